// All sessions by risk: what changes shows at once, the order is made anew at most once a second.

import { el, isWriting, labelled, select, setAttribute, setText } from "./dom.js";
import { firstRun } from "./first_run.js";
import { address, ago, count, sessionAddress, sessionKey, several } from "./format.js";
import { VirtualList, cells, header } from "./list.js";
import { MODES, Mark, Meter, Spark, slopeText } from "./marks.js";

const SORT_EVERY_MS = 1000;
const NARROW = matchMedia("(max-width: 44rem)");
const by = (value, other) => (value < other ? -1 : value > other ? 1 : 0);
const COLUMNS = [
  { name: "risk", title: "Risk", sort: (a, b) => b.risk - a.risk },
  { name: "trend", title: "Last 40 risks" },
  { name: "mode", title: "Mode", sort: (a, b) => MODES.indexOf(b.mode) - MODES.indexOf(a.mode) || b.risk - a.risk },
  { name: "slope", title: "Slope", sort: (a, b) => (b.slope ?? 0) - (a.slope ?? 0) },
  { name: "turns", title: "Turns", sort: (a, b) => b.turns - a.turns },
  { name: "app", title: "App", rises: true, sort: (a, b) => by(a.app_id, b.app_id) },
  { name: "user", title: "User", rises: true, sort: (a, b) => by(a.user_id, b.user_id) },
  { name: "id", title: "Session", rises: true, sort: (a, b) => by(a.session_id, b.session_id) },
  { name: "alert", title: "Alert", sort: (a, b) => weight(b.alert) - weight(a.alert) },
  { name: "ago", title: "Updated", sort: (a, b) => by(b.updated_at, a.updated_at) },
];
const weight = (alert) => (!alert ? 0 : (alert.severity === "critical" ? 2 : 1) + (alert.status === "firing" ? 2 : 0));

const makeRow = () => {
  const meter = new Meter(), spark = new Spark(), mode = new Mark(), alert = new Mark();
  const link = el("a", { tabindex: "-1" });
  const [risk, trend, inMode, slope, turns, app, user, id, alerted, since] = cells(...COLUMNS.map((column) => column.name));
  risk.append(meter.node); trend.append(spark.node); inMode.append(mode.node); id.append(link); alerted.append(alert.node);
  const node = el("div", {}, risk, trend, inMode, slope, turns, app, user, id, alerted, since);
  let shown = null;
  return {
    node,
    render(row) {
      if (shown !== row) {
        meter.show(row.risk, row.mode);
        spark.show(row.spark, row.mode);
        mode.show(row.mode);
        setText(slope, slopeText(row.slope));
        setText(turns, count(row.turns));
        for (const [cell, of] of [[app, row.app_id], [user, row.user_id]]) { setText(cell, of); setAttribute(cell, "title", of); }
        setText(link, row.session_id);
        setAttribute(link, "href", sessionAddress(row));
        setAttribute(link, "title", row.session_id);
        alerted.classList.toggle("none", !row.alert);
        setAttribute(alerted, "data-status", row.alert?.status ?? null);
        if (row.alert) alert.show(row.alert.severity, row.alert.status);
        node.classList.toggle("closed", row.open === false);
        shown = row;
      }
      setText(since, ago(row.updated_at));
    },
  };
};

/** The view; `context.kept.sessions` survives leaving it. */
export class Sessions {
  title = "Sessions";
  keys = { p: "pause or go on", "/": "search by id" };
  #timer = 0;
  #lastSort = -Infinity;
  #due = false;

  constructor(main, context, { parameters }) {
    this.context = context;
    this.kept = context.kept.sessions ??= {};
    this.app = parameters.get("app") ?? "";
    this.mode = parameters.get("mode") ?? "";
    this.text = parameters.get("id") ?? "";
    this.user = parameters.get("user") ?? "";
    this.sort = COLUMNS.find((column) => column.sort && column.name === parameters.get("sort")) ?? COLUMNS[0];
    this.paused = false;
    this.none = el("span");
    this.all = el("button", { type: "button", onclick: () => this.#clear() }, "Show all");
    main.append(this.#toolbar(), this.grid = el("div", { class: "grid sessions", "aria-label": "Sessions" }), this.empty = el("div", { class: "pad", hidden: true }, el("p", { class: "faint" }, this.none, " ", this.all)), this.start = el("div", { class: "pad", hidden: true }));
    this.list = new VirtualList(this.grid, this.#header(), {
      make: makeRow,
      key: sessionKey,
      latest: (row) => (this.paused ? row : context.board.sessions.get(sessionKey(row))),
      rowHeight: () => (NARROW.matches ? 76 : 32),
      open: (row) => { location.hash = sessionAddress(row); },
      opensOnClick: true,
      selected: (row) => { this.kept.key = sessionKey(row); },
    });
    this.list.selectedKey = this.kept.key ?? null;
    this.#order();
    this.list.render();
    if (this.kept.top) this.grid.scrollTop = this.kept.top;
    this.#timer = setInterval(() => { if (!this.paused) { if (this.#due) this.#order(); this.list.schedule(); } }, SORT_EVERY_MS);
  }

  update(changed) {
    if (changed.roles && !this.start.hidden) this.#count();
    if (!changed.sessions) return;
    this.#due = true;
    if (this.paused) return;
    if (!this.list.items.length || performance.now() - this.#lastSort >= SORT_EVERY_MS) this.#order();
    else this.list.schedule(); // rows stay where they are and show the latest: their order waits for its second
  }

  key(name, target) {
    if (name === "p") this.#pause();
    else if (name === "/") this.search.focus();
    else if (target !== this.grid && !(name === "Enter" && target.closest?.("a, button, summary")) && this.list.key(name)) this.grid.focus({ preventScroll: true });
    else return false;
    return true;
  }

  stop() {
    this.kept.top = this.grid.scrollTop;
    clearInterval(this.#timer);
    this.list.stop();
  }

  #toolbar() {
    const changed = () => { this.#remember(); this.#order(); this.grid.scrollTop = 0; };
    const part = (name) => {
      const input = el("input", { type: "search", placeholder: "part of an id", maxlength: "200", spellcheck: "false", oninput: () => { this[name] = input.value.trim(); changed(); } });
      input.value = this[name];
      return input;
    };
    this.search = part("text");
    this.users = part("user");
    this.apps = select([["", "all apps"]], "", { onchange: () => { this.app = this.apps.value; changed(); } });
    const modes = this.modes = select([["", "all modes"], ...MODES.map((mode) => [mode, mode])], this.mode, { onchange: () => { this.mode = modes.value; changed(); } });
    this.sorts = select(COLUMNS.filter((column) => column.sort).map((column) => [column.name, column.title.toLowerCase()]), this.sort.name, { onchange: () => this.#sortBy(this.sorts.value) });
    this.pauseButton = el("button", { type: "button", "aria-pressed": "false", "aria-keyshortcuts": "p", onclick: () => this.#pause() }, "Pause");
    this.counted = el("span", { class: "counted faint" });
    return el("div", { class: "tools" }, el("h1", { tabindex: "-1" }, "Sessions"), this.counted,
      labelled("Session", this.search), labelled("User", this.users), labelled("App", this.apps), labelled("Mode", modes),
      labelled("Sorted by", this.sorts, { class: "field narrow-only" }), this.pauseButton);
  }

  #clear() {
    this.search.value = this.text = this.users.value = this.user = this.app = this.apps.value = this.mode = this.modes.value = "";
    this.#remember();
    this.#order();
    this.grid.focus({ preventScroll: true });
  }

  #header() {
    const made = header(COLUMNS, ({ name, title, sort }) => (sort ? el("button", { type: "button", onclick: () => this.#sortBy(name) }, title) : title));
    this.titles = [...made.querySelectorAll("[data-sort]")];
    this.#markSorted();
    return made;
  }

  #markSorted() {
    for (const title of this.titles) setAttribute(title, "aria-sort", title.dataset.sort !== this.sort.name ? null : this.sort.rises ? "ascending" : "descending");
  }

  #sortBy(name) {
    this.sort = COLUMNS.find((column) => column.name === name);
    this.#markSorted();
    this.sorts.value = name;
    this.#remember();
    this.#order();
    this.grid.scrollTop = 0;
  }

  #pause() {
    this.paused = !this.paused;
    this.pauseButton.textContent = this.paused ? "Go on" : "Pause";
    this.pauseButton.setAttribute("aria-pressed", String(this.paused));
    this.context.say(this.paused ? "The list is paused" : "The list is live");
    if (!this.paused) this.#order();
    else this.#count();
  }

  #remember() {
    const parameters = { id: this.text, user: this.user, app: this.app, mode: this.mode, sort: this.sort === COLUMNS[0] ? "" : this.sort.name };
    history.replaceState(null, "", address(["sessions"], parameters));
    this.context.kept.sessionsAddress = location.hash;
  }

  #order() {
    this.#lastSort = performance.now();
    this.#due = false;
    const wanted = this.text.toLowerCase(), user = this.user.toLowerCase(), { app, mode } = this, apps = new Set(), rows = [];
    for (const row of this.context.board.sessions.values()) {
      apps.add(row.app_id);
      if ((app && row.app_id !== app) || (mode && row.mode !== mode)) continue;
      if (!row.session_id.toLowerCase().includes(wanted) || !row.user_id.toLowerCase().includes(user)) continue;
      rows.push(row);
    }
    rows.sort((a, b) => this.sort.sort(a, b) || by(a.session_id, b.session_id) || by(a.app_id, b.app_id));
    this.list.set(rows);
    this.#offer(apps);
    this.#count();
  }

  #offer(apps) {
    if (this.app) apps.add(this.app);
    const names = [...apps].sort(), shown = names.join("\n");
    if (this.appsShown === shown || isWriting(document.activeElement) && document.activeElement === this.apps) return;
    this.appsShown = shown;
    this.apps.replaceChildren(...[["", "all apps"], ...names.map((name) => [name, name])].map(([value, text]) => el("option", { value }, text)));
    this.apps.value = this.app;
  }

  #count() {
    const { sessions, complete } = this.context.board, shown = this.list.items.length;
    const all = several(sessions.size, "session");
    setText(this.counted, `${shown === sessions.size ? all : `${count(shown)} of ${all}`}${this.paused ? ", paused" : complete ? "" : " …"}`);
    this.start.hidden = !complete || sessions.size > 0;
    this.empty.hidden = shown > 0 || !this.start.hidden;
    this.grid.hidden = shown === 0;
    this.all.hidden = !complete;
    setText(this.none, complete ? "No session is like that." : "Loading …");
    if (!this.start.hidden) this.start.replaceChildren(firstRun(this.context.board));
  }
}
