// One alert in full: what it says, what it rests on, what was done about it.

import { el, pairs } from "./dom.js";
import { ago, moment, ratio, sessionAddress } from "./format.js";
import { drawContributions } from "./chart.js";
import { mark } from "./marks.js";

const WIDTH = 340;

/** Whether nobody is to be called by it: it is snoozed, or repeats another. */
export const rests = (alert) => alert.status !== "resolved" && Boolean(alert.snoozed_until || alert.duplicate_of);

/** How an alert stands, in one word; what was sent and is not folded yet is said. */
export const standing = (alert, pending) =>
  (pending ? `${pending} …` : rests(alert) ? (alert.duplicate_of ? "repeats another" : "snoozed") : alert.status);

/** What somebody said of it. */
export const labelText = (label) => {
  const said = label && typeof label === "object" ? label.label ?? label.escalating : label;
  return said === true || said === "true" ? "true alert" : said === false || said === "false" ? "false alert" : null;
};

const bars = (signals) => {
  const most = Math.max(...signals.map((signal) => Math.abs(signal.share)), 0.0001);
  return el("ul", { class: "bars" }, ...signals.map(({ name, share }) => {
    const bar = el("i");
    bar.style.width = `${(Math.abs(share) / most) * 100}%`;
    if (share < 0) bar.className = "less";
    return el("li", {}, el("span", { class: "name" }, name.replaceAll("_", " ")), el("span", { class: "track", "aria-hidden": "true" }, bar), el("span", { class: "number" }, share.toFixed(2)));
  }));
};

const part = (title, content) => (content ? el("section", {}, el("h3", {}, title), content) : null);

/** The card; `pick(turn)` makes its evidence turns buttons, `actions` are put below its head. */
export const alertCard = (alert, { pending = null, pick = null, actions = null, linked = true } = {}) => {
  const label = labelText(alert.label), judged = typeof alert.probability === "number";
  const evidence = alert.evidence?.length
    ? el("span", { class: "evidence-turns" }, ...alert.evidence.map((turn) => (pick
      ? el("button", { type: "button", class: "chip", "aria-label": `Turn ${turn}, evidence`, onclick: () => pick(turn) }, `◆ ${turn}`)
      : el("a", { class: "chip", href: sessionAddress(alert, { turn: String(turn) }), "aria-label": `Turn ${turn}, evidence` }, `◆ ${turn}`))))
    : null;
  return el("article", { class: "alert-card", "data-kind": alert.severity, "data-status": alert.status },
    el("header", {}, mark(alert.severity), el("span", { class: "status" }, standing(alert, pending)), el("span", { class: "faint" }, `${ago(alert.fired_at)} ago`)),
    el("p", { class: "reason" }, alert.sentence),
    alert.quote ? el("blockquote", { class: "text", "aria-label": "Worst turn" }, alert.quote) : null,
    alert.next_step ? el("p", { class: "next-step" }, alert.next_step) : null,
    actions,
    pairs([
      ["Session", linked ? el("a", { href: sessionAddress(alert) }, alert.session_id) : null],
      ["App", alert.app_id],
      ["User", alert.user_id],
      ["Assigned to", alert.assignee],
      ["Rests until", rests(alert) && alert.snoozed_until ? moment(alert.snoozed_until) : null],
      ["Repeats alert", alert.duplicate_of],
      ["Category", alert.category],
      ["Cause", alert.by ? `${alert.cause}, by ${alert.by}` : alert.cause],
      judged ? ["Probability", ratio(alert.probability)] : ["Score", ratio(alert.score)],
      ["Turn", String(alert.turn)],
      ["Evidence turns", evidence],
      ["Fired", moment(alert.fired_at)],
      ["Changed", alert.updated_at === alert.fired_at ? null : moment(alert.updated_at)],
      ["Label", label],
      ["Trace", alert.trace_id ? el("code", {}, alert.trace_id) : null],
    ]),
    part("Notes", alert.notes?.length ? el("ul", {}, ...alert.notes.map(({ by, at, note }) =>
      el("li", {}, el("span", { class: "faint" }, `${by}, ${ago(at)} ago: `), note ?? "shown with the text"))) : null),
    el("details", {}, el("summary", {}, "Why, in log-odds"),
      el("p", {}, alert.reason),
      part("Signals, share of what made the score", alert.signals?.length ? bars(alert.signals) : null),
      part("What each turn added, in log-odds", alert.contributions?.length ? drawContributions(alert.contributions, alert.evidence ?? [], WIDTH) : null),
      part("Counterfactual", typeof alert.counterfactual === "string" ? el("p", {}, alert.counterfactual) : null)));
};
