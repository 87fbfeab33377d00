// Search over what is remembered. Each search is text that is read, so it is sent on purpose, not at every letter,
// and stands in no address.

import * as client from "./client.js";
import { el, labelled, select, setAttribute, setText } from "./dom.js";
import { ratio, sessionAddress, several } from "./format.js";

const KINDS = [["turns", "turns"], ["episodes", "episodes"], ["facts", "facts"], ["memories", "memories of apps"]];
const MOST = 50;

/** The view. */
export class Search {
  title = "Search";
  keys = { "/": "to the search field", x: "show or hide text" };
  #asked = null;
  #text = false;
  #abort = null;

  constructor(main, context, { parameters }) {
    this.context = context;
    main.append(el("div", { class: "tools" }, el("h1", { tabindex: "-1" }, "Search")));
    if (!context.me.text) {
      main.append(el("p", { class: "pad" }, "This token may not read text, and a search shows it. Whoever runs the service gives the permission (http.tokens, text)."));
      return;
    }
    const apps = context.me.apps ?? [...new Set([...context.board.sessions.values()].map((row) => row.app_id))].sort();
    this.query = el("input", { type: "search", required: true, maxlength: "1000", autocomplete: "off", class: "wide-input" });
    this.kind = select(KINDS, KINDS.some(([kind]) => kind === parameters.get("kind")) ? parameters.get("kind") : "turns");
    this.app = select([["", "all apps"], ...apps.map((app) => [app, app])], "");
    this.state = el("p", { class: "faint", role: "status" }, "Every search is recorded in the audit.");
    this.textButton = el("button", { type: "button", "aria-pressed": "false", "aria-keyshortcuts": "x", onclick: () => this.#unmask() }, "Show text");
    this.hits = el("ol", { class: "hits" });
    main.append(el("form", { class: "tools", role: "search", onsubmit: (event) => { event.preventDefault(); this.#ask(); } },
      labelled("Words", this.query, { class: "field grow" }), labelled("In", this.kind), labelled("App", this.app),
      el("button", { type: "submit", class: "main" }, "Search")), el("div", { class: "tools" }, this.state, this.textButton), this.hits);
  }

  update() { /* answers stand until the next search */ }

  key(name) {
    if (!this.query) return false;
    if (name === "/") this.query.focus();
    else if (name === "x") this.#unmask();
    else return false;
    return true;
  }

  stop() { this.#abort?.abort(); }

  #ask() {
    const q = this.query.value.trim();
    if (!q) return;
    this.#asked = { q, kind: this.kind.value, app_id: this.app.value, limit: String(MOST) };
    this.#run();
  }

  /** Shows or hides text, as in a session: it is fetched when it is asked for, and forgotten when it is hidden. */
  #unmask() {
    this.#text = !this.#text;
    this.textButton.textContent = this.#text ? "Hide text" : "Show text";
    setAttribute(this.textButton, "aria-pressed", String(this.#text));
    this.context.say(this.#text ? "Text is shown" : "Text is masked");
    if (!this.#text) for (const said of this.hits.querySelectorAll(".text")) said.replaceChildren(hidden());
    if (this.#asked) this.#run();
  }

  async #run() {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    setText(this.state, "Searching …");
    try {
      const { hits } = await client.search({ ...this.#asked, text: String(this.#text) }, abort.signal);
      this.hits.replaceChildren(...hits.map(hit));
      setText(this.state, hits.length === MOST ? `The ${MOST} nearest.` : hits.length ? `${several(hits.length, "answer")}, the nearest first.` : "Nothing like it is remembered.");
    } catch (error) {
      if (error.name === "AbortError") return;
      setText(this.state, "No answer.");
      this.context.refused(error, `The search failed: ${error.message}.`);
    }
  }
}

const hidden = () => el("span", { class: "masked-word" }, "masked");

const hit = (found) => {
  const { session_id: session, turn, user_id: user, app_id: app, score, text } = found;
  const at = typeof turn === "number" ? String(turn) : "";
  const place = session ? el("a", { href: sessionAddress(found, { turn: at }) }, at ? `${session}, turn ${at}` : session) : null;
  const rest = [app, user, `score ${ratio(score)}`].filter(Boolean).join(" · ");
  return el("li", {}, el("p", { class: "faint" }, place, place && " · ", rest), el("p", { class: "text" }, text ?? hidden()));
};
