// The queue of alerts: what burns first, then what has waited longest.

import { alertCard, labelText, standing } from "./alert_card.js";
import { el, labelled, select, setAttribute, setText } from "./dom.js";
import { address, ago, count, ratio, sessionAddress, several } from "./format.js";
import { VirtualList, cells } from "./list.js";
import { Mark } from "./marks.js";

const NARROW = matchMedia("(max-width: 60rem)");
const STATUS = { firing: 0, acknowledged: 1, resolved: 2 }, SEVERITY = { critical: 0, warning: 1 };
const COLUMNS = [["severity", "Severity"], ["status", "Status"], ["reason", "Reason"], ["id", "Session"], ["app", "App"], ["score", "Score"], ["ago", "Age"]];
const KINDS = { open: (a) => a.status !== "resolved", firing: (a) => a.status === "firing", unlabelled: (a) => labelText(a.label) === null, all: () => true };

/** What comes first: firing before the rest, critical before warning, the oldest first; of the resolved the latest. */
export const inOrder = (a, b) => {
  const status = STATUS[a.status] - STATUS[b.status];
  if (status) return status;
  const age = a.fired_at < b.fired_at ? -1 : a.fired_at > b.fired_at ? 1 : a.alert_id < b.alert_id ? -1 : 1;
  if (a.status === "resolved") return -age;
  return SEVERITY[a.severity] - SEVERITY[b.severity] || age;
};

/** How many wait for somebody. */
export const waiting = (alerts) => {
  let found = 0;
  for (const alert of alerts.values()) if (alert.status === "firing") found++;
  return found;
};

/** The view. */
export class Alerts {
  title = "Alerts";
  keys = { a: "acknowledge", t: "label as a true alert", f: "label as a false alert", "/": "search" };
  #shown = null;

  constructor(main, context, { parameters }) {
    this.context = context;
    this.kept = context.kept.alerts ??= {};
    this.kind = parameters.get("show") in KINDS ? parameters.get("show") : "open";
    this.text = "";
    this.grid = el("div", { class: "grid alerts", "aria-label": "Alerts" });
    this.aside = el("section", { class: "aside", "aria-label": "Selected alert" });
    this.empty = el("p", { class: "pad faint", hidden: true });
    main.append(this.#toolbar(), this.empty, this.split = el("div", { class: "split" }, this.grid, this.aside));
    this.list = new VirtualList(this.grid, header(), {
      make: () => this.#row(),
      key: (alert) => alert.alert_id,
      latest: (alert) => context.board.alerts.get(alert.alert_id),
      rowHeight: () => (NARROW.matches ? 78 : 42),
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
    else if (["a", "t", "f"].includes(name)) {
      if (!alert) this.context.fail("Select an alert first: j and k move.");
      else if (name === "a") this.context.deeds.acknowledge(alert);
      else this.context.deeds.label(alert, name === "t");
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
    this.search = el("input", { type: "search", placeholder: "reason, session, app", maxlength: "200", spellcheck: "false", oninput: () => { this.text = this.search.value.trim().toLowerCase(); this.#order(); } });
    const kinds = select([["open", "open"], ["firing", "firing only"], ["unlabelled", "without a label"], ["all", "all"]], this.kind, { onchange: () => {
      this.kind = kinds.value;
      history.replaceState(null, "", address(["alerts"], { show: this.kind === "open" ? "" : this.kind }));
      this.#order();
    } });
    this.counted = el("span", { class: "counted faint" });
    return el("div", { class: "tools" }, el("h1", { tabindex: "-1" }, "Alerts"), this.counted, labelled("Search", this.search), labelled("Show", kinds));
  }

  #row() {
    const severity = new Mark();
    const link = el("a", { tabindex: "-1" });
    const [first, status, reason, id, app, score, since] = cells(...COLUMNS.map(([name]) => name));
    first.append(severity.node);
    id.append(link);
    const node = el("div", {}, first, status, reason, id, app, score, since);
    return {
      node,
      render: (alert) => {
        severity.show(alert.severity);
        const label = labelText(alert.label);
        setText(status, standing(alert, this.context.deeds.word(alert)) + (label ? `, ${label.split(" ")[0]}` : ""));
        setAttribute(status, "data-status", alert.status);
        setText(reason, alert.sentence);
        setAttribute(reason, "title", alert.sentence);
        setText(link, alert.session_id);
        setAttribute(link, "href", sessionAddress(alert));
        setText(app, alert.app_id);
        setText(score, ratio(alert.probability ?? alert.score));
        setText(since, ago(alert.fired_at));
      },
    };
  }

  #order() {
    const { alerts, complete } = this.context.board;
    const rows = [...alerts.values()].filter((alert) => KINDS[this.kind](alert) &&
      (!this.text || [alert.sentence, alert.session_id, alert.app_id, alert.user_id].some((each) => each?.toLowerCase().includes(this.text))));
    // The selected one leaves the queue when it is resolved: the next in line takes its place.
    const before = this.list.selectedIndex;
    this.list.set(rows.sort(inOrder));
    if (before >= 0 && this.list.selectedIndex < 0 && rows.length) this.list.select(Math.min(before, rows.length - 1));
    if (this.list.selectedKey === null && rows.length) this.list.select(0);
    const all = several(alerts.size, "alert");
    setText(this.counted, `${rows.length === alerts.size ? all : `${count(rows.length)} of ${all}`}, ${count(waiting(alerts))} firing`);
    this.split.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    setText(this.empty, !complete ? "Loading …" : alerts.size ? "No alert is like that." : "No alert has been raised.");
    this.list.schedule();
    this.#card();
  }

  #card() {
    const alert = this.#selected(), { deeds } = this.context, pending = alert && deeds.word(alert);
    if (this.#shown?.alert === alert && this.#shown?.pending === pending) return;
    this.#shown = { alert, pending };
    if (!alert) { this.aside.replaceChildren(); return; }
    const focused = this.aside.contains(document.activeElement) ? document.activeElement.dataset.deed : null;
    const button = (deed, text, does, off = false) => el("button", { type: "button", "data-deed": deed, "aria-keyshortcuts": deed, disabled: off, onclick: does }, text, el("kbd", { "aria-hidden": "true" }, deed));
    const busy = Boolean(pending);
    this.aside.replaceChildren(alertCard(alert, { pending, actions: el("p", { class: "buttons" },
      button("a", "Acknowledge", () => deeds.acknowledge(alert), busy || alert.status !== "firing"),
      button("t", "True alert", () => deeds.label(alert, true), busy),
      button("f", "False alert", () => deeds.label(alert, false), busy)) }));
    if (focused) this.aside.querySelector(`[data-deed="${focused}"]`)?.focus();
  }
}

const header = () => el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row", "aria-rowindex": "1" },
  ...COLUMNS.map(([name, title]) => el("div", { role: "columnheader", class: `cell ${name}` }, title))));
