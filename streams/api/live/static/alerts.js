// The queue of alerts: what burns first, then what has waited longest.

import { alertCard, labelText, rests, standing } from "./alert_card.js";
import { DEEDS, deedButtons, replaceCards } from "./deeds.js";
import { el, labelled, select, setAttribute, setText } from "./dom.js";
import { address, ago, count, ratio, sessionAddress, several } from "./format.js";
import { VirtualList, cells, header } from "./list.js";
import { Mark } from "./marks.js";
import { AlertFilters } from "./searches.js";

const NARROW = matchMedia("(max-width: 60rem)");
const STATUS = { firing: 0, acknowledged: 1, resolved: 2 }, SEVERITY = { critical: 0, warning: 1 };
/** `text(alert, pending)` is what a cell says. Severity, status and session are drawn by the row. */
const COLUMNS = [
  { name: "severity", title: "Severity" },
  { name: "status", title: "Status", text: (alert, pending) => [standing(alert, pending), labelText(alert.label)?.split(" ")[0]].filter(Boolean).join(", ") },
  { name: "reason", title: "Reason", text: (alert) => what(alert), full: (alert) => alert.sentence },
  { name: "id", title: "Session", full: (alert) => alert.session_id },
  { name: "user", title: "User", text: (alert) => alert.user_id, full: (alert) => alert.user_id },
  { name: "app", title: "App", text: (alert) => alert.app_id, full: (alert) => alert.app_id },
  { name: "score", title: "Score", text: (alert) => ratio(alert.probability ?? alert.score) },
  { name: "ago", title: "Age", text: (alert) => ago(alert.fired_at) },
];
const isCalling = (alert) => alert.status === "firing" && !rests(alert);
const KINDS = {
  open: ["open", (alert) => alert.status !== "resolved"],
  firing: ["firing only", (alert) => isCalling(alert)],
  unlabelled: ["without a label", (alert) => labelText(alert.label) === null],
  all: ["all", () => true],
};
const SOUGHT = ["sentence", "session_id", "app_id", "user_id", "assignee"];

/** The sentence without whose session it is, how the alert stands and how probable it is: columns of their own say that. */
const what = ({ sentence, status, session_id: id, user_id: user, app_id: app }) => {
  const who = `ession ${id} (user ${user}, app ${app}) `, at = sentence.indexOf(who);
  if (at < 0) return sentence;
  const news = sentence.slice(0, at - 1), said = (news.toLowerCase() === `${status}: ` ? "" : news) + sentence.slice(at + who.length);
  return said[0].toUpperCase() + said.slice(1).replace(/; (probability|score) [\d.]+/, "");
};

const rank = (alert) => (rests(alert) ? STATUS.acknowledged : STATUS[alert.status]);

/** What comes first: firing before the rest, critical before warning, the oldest first; of the resolved the latest. */
export const inOrder = (a, b) => {
  const status = rank(a) - rank(b);
  if (status) return status;
  const age = a.fired_at < b.fired_at ? -1 : a.fired_at > b.fired_at ? 1 : a.alert_id < b.alert_id ? -1 : 1;
  if (a.status === "resolved") return -age;
  return SEVERITY[a.severity] - SEVERITY[b.severity] || age;
};

/** How many wait for somebody. */
export const waiting = (alerts) => {
  let found = 0;
  for (const alert of alerts.values()) if (isCalling(alert)) found++;
  return found;
};

/** The view. */
export class Alerts {
  title = "Alerts";
  keys = { ...Object.fromEntries(Object.entries(DEEDS).map(([key, { help }]) => [key, help])), "/": "search" };
  #shown = null;

  constructor(main, context, { parameters }) {
    this.context = context;
    this.kept = context.kept.alerts ??= {};
    this.kind = parameters.get("show") in KINDS ? parameters.get("show") : "open";
    this.text = parameters.get("search") ?? "";
    this.grid = el("div", { class: "grid alerts", "aria-label": "Alerts" });
    this.parameters = parameters;
    this.aside = el("section", { class: "aside", "aria-label": "Selected alert" });
    this.empty = el("p", { class: "pad faint", hidden: true });
    main.append(this.#toolbar(), this.empty, this.split = el("div", { class: "split" }, this.grid, this.aside));
    this.list = new VirtualList(this.grid, header(COLUMNS), {
      make: () => this.#row(),
      key: (alert) => alert.alert_id,
      latest: (alert) => context.board.alerts.get(alert.alert_id),
      rowHeight: () => (NARROW.matches ? 78 : 60),
      selected: (alert) => { this.kept.key = alert.alert_id; this.#card(); },
      open: (alert) => { location.hash = sessionAddress(alert); },
    });
    this.list.selectedKey = this.kept.key ?? null;
    this.#order();
    this.timer = setInterval(() => this.list.schedule(), 1000);
  }

  update(changed) {
    if (!changed.alerts) return;
    this.#order();
  }

  key(name, target) {
    const alert = this.#selected();
    if (name === "/") this.search.focus();
    else if (name === "Enter" && target.closest?.("a, button, summary")) return false;
    else if (name in DEEDS) {
      if (!alert) this.context.fail("Select an alert first: j and k move.");
      else DEEDS[name].does(this.context.deeds, alert);
    } else if (target !== this.grid && this.list.key(name)) this.grid.focus({ preventScroll: true });
    else return false;
    return true;
  }

  stop() { clearInterval(this.timer); this.list.stop(); }

  #selected() {
    const item = this.list.selectedItem;
    return item ? this.context.board.alerts.get(item.alert_id) ?? null : null;
  }

  #toolbar() {
    const changed = () => {
      this.kind = kinds.value;
      history.replaceState(null, "", address(["alerts"], { show: this.kind === "open" ? "" : this.kind, search: this.text, ...this.filters.chosen }));
      this.#order();
    };
    this.search = el("input", { type: "search", placeholder: "words or an id", maxlength: "200", spellcheck: "false", oninput: () => { this.text = this.search.value.trim(); changed(); } });
    this.search.value = this.text;
    const kinds = select(Object.entries(KINDS).map(([kind, [name]]) => [kind, name]), this.kind, { onchange: changed });
    this.filters = new AlertFilters(this.context, this.parameters, kinds, changed);
    this.counted = el("span", { class: "counted faint" });
    return el("div", { class: "tools" }, el("h1", { tabindex: "-1" }, "Alerts"), this.counted, labelled("Search", this.search), labelled("Show", kinds), ...this.filters.nodes);
  }

  #row() {
    const severity = new Mark(), link = el("a", { tabindex: "-1" });
    const made = cells(...COLUMNS.map(({ name }) => name)), node = el("div", {}, ...made);
    node.querySelector(".severity").append(severity.node);
    node.querySelector(".id").append(link);
    return {
      node,
      render: (alert) => {
        const pending = this.context.deeds.word(alert);
        setAttribute(node, "data-status", alert.status);
        severity.show(alert.severity);
        setText(link, alert.session_id);
        setAttribute(link, "href", sessionAddress(alert));
        COLUMNS.forEach(({ text, full }, at) => {
          if (text) setText(made[at], text(alert, pending));
          if (full) setAttribute(made[at], "title", full(alert));
        });
        if (this.context.deeds.marked.has(alert.alert_id)) made[1].prepend("✓ ");
      },
    };
  }

  #order() {
    const { alerts, complete } = this.context.board;
    const [, isShown] = KINDS[this.kind], sought = this.text.toLowerCase();
    const rows = [...alerts.values()].filter((alert) => isShown(alert) && this.filters.has(alert) && SOUGHT.some((name) => alert[name]?.toLowerCase().includes(sought)));
    this.filters.offer(new Set([...alerts.values()].map((alert) => alert.app_id)));
    // The selected one leaves the queue when it is resolved: the next in line takes its place.
    const before = this.list.selectedIndex;
    this.list.set(rows.sort(inOrder));
    if (before >= 0 && this.list.selectedIndex < 0 && rows.length) this.list.select(Math.min(before, rows.length - 1));
    if (this.list.selectedKey === null && rows.length) this.list.select(0);
    const all = several(alerts.size, "alert");
    setText(this.counted, `${rows.length === alerts.size ? all : `${count(rows.length)} of ${all}`}, ${count(waiting(alerts))} firing`);
    this.split.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    setText(this.empty, !complete ? "Loading …" : alerts.size ? "No alert is like that." : "No alert has been raised. Those of live.window show here as they come.");
    this.list.schedule();
    this.#card();
  }

  #card() {
    const alert = this.#selected(), { deeds } = this.context, pending = alert && deeds.word(alert);
    if (this.#shown?.alert === alert && this.#shown?.pending === pending) return;
    this.#shown = { alert, pending };
    if (!alert) { this.aside.replaceChildren(); return; }
    replaceCards(this.aside, [alertCard(alert, { pending, actions: deedButtons(deeds, alert, { keys: true }) })]);
  }
}
