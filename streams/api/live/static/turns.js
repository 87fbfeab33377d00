// The turns of a session as a virtual list, and the text of one where it may be read.

import { correctTurn, giveFeedback } from "./changes.js";
import { el, setText } from "./dom.js";
import { moment, ratio, timeOfDay } from "./format.js";
import { VirtualList, cells, header } from "./list.js";
import { Meter } from "./marks.js";

const PAGE = 200;
const NARROW = matchMedia("(max-width: 44rem)");
const COLUMNS = [["turn", "Turn"], ["role", "Role"], ["risk", "Risk"], ["said", "Text"], ["evidence", "Evidence"], ["time", "Time"]].map(([name, title]) => ({ name, title }));

/** Text of turns, fetched by pages as they come into sight and forgotten when it is hidden. */
class Texts {
  #pages = new Map();
  #held = new Map();

  constructor(read, arrived, failed) { Object.assign(this, { read, arrived, failed }); }

  of(turn) { return this.#held.get(turn); }

  want(first, last) {
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) this.#fetch(page);
  }

  /** The last page grew, or somebody asks again after a failure. */
  renew() { this.#pages.clear(); }

  async #fetch(page) {
    if (this.#pages.has(page)) return;
    this.#pages.set(page, true);
    try {
      const { turns } = await this.read(page * PAGE, (page + 1) * PAGE - 1);
      for (const turn of turns) this.#held.set(turn.turn, turn.content);
      this.arrived();
    } catch (error) {
      if (error.name !== "AbortError") this.failed(error);
    }
  }
}

/** List and reader of a session's turns; `read(first, last)` fetches text. */
export class Turns {
  #texts = null;

  constructor(context, session, read) {
    this.session = session;
    this.context = context;
    this.readText = read;
    this.grid = el("div", { class: "grid turns", "aria-label": "Turns" });
    this.reader = el("section", { class: "reader", "aria-label": "Selected turn", tabindex: "0" }, el("p", { class: "faint" }, "Select a turn."));
    this.node = el("div", { class: "turns-part" }, this.grid, this.reader);
    this.list = new VirtualList(this.grid, header(COLUMNS), {
      make: () => this.#row(),
      key: (turn) => turn.turn,
      rowHeight: () => (!this.#texts ? 28 : NARROW.matches ? 66 : 44),
      selected: (turn) => this.#show(turn),
      inSight: (first, last) => this.#inSight(first, last),
    });
    this.list.root.classList.add("masked");
  }

  set(turns) {
    this.list.set(turns);
    this.#texts?.renew();
    if (this.list.selectedItem) this.#show(this.list.selectedItem);
  }

  pick(turn) {
    const index = this.list.items.findIndex((each) => each.turn >= turn);
    this.list.select(index < 0 ? this.list.items.length - 1 : index);
  }

  /** Shows or hides text. */
  unmask(shown) {
    this.#texts = shown
      ? new Texts(this.readText, () => { this.list.schedule(); this.#show(this.list.selectedItem); }, (error) => this.context.fail(`The text was not read: ${error.message}.`))
      : null;
    this.grid.classList.toggle("masked", !shown);
    this.list.render();
    if (this.list.selectedItem) this.list.select(this.list.selectedIndex); // rows are higher now: stay at it
  }

  stop() { this.list.stop(); this.#texts = null; }

  #inSight(first, last) {
    if (!this.#texts) return;
    const { items } = this.list;
    this.#texts.want(items[first].turn, items[last].turn);
  }

  #row() {
    const [number, role, risk, said, evidence, time] = cells(...COLUMNS.map(({ name }) => name));
    const meter = new Meter();
    risk.append(meter.node);
    return {
      node: el("div", {}, number, role, risk, said, evidence, time),
      render: (turn) => {
        setText(number, String(turn.turn));
        setText(role, turn.role);
        meter.show(turn.risk, turn.evidence.length ? "evidence" : "turn"); // no mode: that is the session's
        const text = this.#texts?.of(turn.turn);
        setText(said, this.#texts ? text ?? "…" : "masked");
        setText(evidence, turn.evidence.length ? "◆ alert" : "");
        setText(time, timeOfDay(Date.parse(turn.timestamp)));
      },
    };
  }

  #show(turn) {
    if (!turn) return;
    const text = this.#texts?.of(turn.turn);
    this.reader.replaceChildren(
      el("h3", {}, `Turn ${turn.turn}, ${turn.role}`),
      el("p", { class: "faint" }, `${moment(turn.timestamp)} · risk ${ratio(turn.risk)}${turn.evidence.length ? ` · evidence of ${turn.evidence.length === 1 ? "an alert" : `${turn.evidence.length} alerts`}` : ""}`),
      el("p", { class: this.#texts ? "text" : "faint" }, this.#texts ? text ?? "This turn's text is not stored any more, or still on its way." : "The text is masked."),
      el("p", { class: "buttons" },
        ...(turn.role === "assistant" ? [["Liked", 1], ["Disliked", -1]] : []).map(([word, value]) =>
          el("button", { type: "button", onclick: () => giveFeedback(this.context, this.session, turn, value) }, word)),
        text === undefined ? null : el("button", { type: "button", onclick: () => correctTurn(this.context, this.session, turn, text) }, "Correct the text")));
  }
}
