// What operators do to alerts. It goes to the log and is not taken back, so labels ask once more.

import * as client from "./client.js";
import { el, select } from "./dom.js";
import { ago, now, ratio, sessionAddress, several } from "./format.js";

const SETTLES_WITHIN_MS = 30_000;
const RESTS = [["30", "30 minutes"], ["60", "1 hour"], ["240", "4 hours"], ["1440", "1 day"]];
const isOpen = (alert) => alert.status !== "resolved";

/** By key: what it is called, what it does, and whether it can be done to an alert that stands like this. */
export const DEEDS = {
  a: { text: "Acknowledge", help: "acknowledge", does: (deeds, alert) => deeds.acknowledge(alert), may: (alert) => alert.status === "firing" },
  t: { text: "True alert", help: "label as a true alert", does: (deeds, alert) => deeds.label(alert, true) },
  f: { text: "False alert", help: "label as a false alert", does: (deeds, alert) => deeds.label(alert, false) },
  m: { text: "Take over", help: "assign to yourself", does: (deeds, alert) => deeds.takeOver(alert), may: isOpen },
  z: { text: "Snooze", help: "snooze", does: (deeds, alert) => deeds.snooze(alert), may: isOpen },
  d: { text: "Repeats …", help: "mark as repeating another", does: (deeds, alert) => deeds.repeats(alert), may: isOpen },
  n: { text: "Note", help: "add a note", does: (deeds, alert) => deeds.note(alert) },
  i: { text: "Similar", help: "similar sessions", does: (deeds, alert) => deeds.similar(alert) },
  x: { text: "Select", help: "select: what is done to one is done to all", does: (deeds, alert) => deeds.mark(alert), queue: true },
};

/** Buttons of an alert; `latest()` is how it stands when one is pressed, `keys` whether its key does the same. */
export const deedButtons = (deeds, alert, { latest = () => alert, keys = false } = {}) => {
  const pending = Boolean(deeds.word(alert));
  return el("p", { class: "buttons" }, ...Object.entries(DEEDS).filter(([, { queue }]) => keys || !queue).map(([key, { text, does, may }]) => el("button", {
    type: "button", "data-deed": `${key} ${alert.alert_id}`, "aria-keyshortcuts": keys ? key : null,
    disabled: pending || (may && !may(alert)), onclick: () => does(deeds, latest()),
  }, text, keys ? el("kbd", { "aria-hidden": "true" }, key) : null)));
};

/** Puts cards into a place; the focus stays on its button. */
export const replaceCards = (place, cards) => {
  const focused = place.contains(document.activeElement) ? document.activeElement.dataset.deed : null;
  place.replaceChildren(...cards);
  if (focused) [...place.querySelectorAll("[data-deed]")].find((each) => each.dataset.deed === focused)?.focus();
};

/** Sends deeds and knows which are on their way: `pending.get(alert_id)` says what. */
export class Deeds {
  pending = new Map();
  marked = new Set();

  constructor(context) { this.context = context; }

  /** Forgets what has arrived: the alert has changed since. */
  settle(alerts) {
    for (const [id, sent] of this.pending) {
      if (alerts.get(id) !== sent.alert && alerts.has(id)) this.pending.delete(id);
    }
  }

  word(alert) { return this.pending.get(alert.alert_id)?.word ?? null; }

  /** The alerts that a deed is done to: all that are selected, if this one is. */
  of(alert) {
    const latest = [...this.marked].map((id) => this.context.board.alerts.get(id)).filter(Boolean);
    return this.marked.has(alert.alert_id) ? latest : [alert];
  }

  mark(alert) {
    if (!this.marked.delete(alert.alert_id)) this.marked.add(alert.alert_id);
    this.context.say(`${several(this.marked.size, "alert")} selected`);
    this.context.changed();
  }

  async acknowledge(alert) {
    if (alert.status !== "firing") {
      this.context.fail(`This alert is ${alert.status}: only one that is firing can be acknowledged.`);
      return;
    }
    await this.#send([alert], "acknowledged", () => client.acknowledge(alert));
  }

  /** Asks for a reason, then sends. */
  label(alert, right) {
    const what = right ? "true alert" : "false alert", reason = textarea();
    this.#ask(alert, `Label as a ${what}?`, "Back-tests and calibration measure by it. It cannot be taken back; a later label counts instead.",
      "Reason (optional)", reason, `Label as ${what}`, (alerts) => this.#send(alerts, what, (those) => (those.length === 1
        ? client.label(those[0], right, reason.value.trim()) : client.labelAll(those, right, reason.value.trim()))));
  }

  takeOver(alert) { this.#triage(this.of(alert), { assignee: this.context.me.name }, "assigned"); }

  snooze(alert) {
    const long = select(RESTS, "60");
    this.#ask(alert, "Snooze?", "It is not told again before, unless it grows worse.", "For", long, "Snooze",
      (alerts) => this.#triage(alerts, { snoozed_until: new Date(now() + Number(long.value) * 60_000).toISOString() }, "snoozed"));
  }

  repeats(alert) {
    const those = new Set(this.of(alert)), others = [...this.context.board.alerts.values()].filter((each) =>
      each.app_id === alert.app_id && !those.has(each) && !each.duplicate_of);
    if (!others.length) { this.context.fail("No other alert of the app is known."); return; }
    const first = select(others.map((each) => [each.alert_id, `${each.session_id}, ${ago(each.fired_at)} ago`]), others[0].alert_id);
    this.#ask(alert, "Repeats another alert?", "It is left to the other one, and told by itself only when it becomes critical.", "Repeats that of", first, "Mark",
      (alerts) => this.#triage(alerts, { duplicate_of: first.value }, "marked"));
  }

  note(alert) {
    const note = textarea({ required: true });
    this.#ask(alert, "Add a note?", "It is shown to those who may read text, and goes with the session when that is erased.", "Note", note, "Add note",
      (alerts) => this.#triage(alerts, { note: note.value.trim() }, "noted"));
  }

  /** Shows sessions in which something like it was said. */
  async similar(alert) {
    let sessions;
    try {
      ({ sessions } = await client.similar(alert));
    } catch (error) { this.context.refused(error, `Similar sessions were not found: ${error.message}.`); return; }
    const close = el("button", { type: "button", class: "main", onclick: () => dialog.close() }, "Close");
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" }, el("h2", { id: "ask-title" }, "Sessions like it"),
      sessions.length ? el("ul", {}, ...sessions.map((each) => el("li", {},
        el("a", { href: sessionAddress(each, { turn: String(each.turn) }), onclick: () => dialog.close() }, `${each.session_id}, turn ${each.turn}`),
        el("span", { class: "faint" }, ` ${ratio(each.similarity)}${each.alert ? `, alert ${each.alert.status}` : ""}`))))
        : el("p", {}, "Nothing like it is indexed."), el("p", { class: "buttons" }, close));
    this.context.ask(dialog, close);
  }

  #ask(alert, title, text, name, field, submit, does) {
    const alerts = this.of(alert);
    field.id = "ask-field";
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" },
      el("form", { method: "dialog", onsubmit: (event) => { event.preventDefault(); dialog.close(); does(alerts); } },
        el("h2", { id: "ask-title" }, title),
        el("p", { class: "reason" }, alerts.length === 1 ? alert.sentence : `${several(alerts.length, "selected alert")}.`),
        el("p", { class: "faint" }, text),
        el("label", { for: "ask-field" }, name), " ", field,
        el("p", { class: "buttons" },
          el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
          el("button", { type: "submit", class: "main" }, submit))));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); dialog.querySelector("form").requestSubmit(); }
    });
    this.context.ask(dialog, field);
  }

  #triage(alerts, news, word) { return this.#send(alerts, word, (those) => client.triage(those, news)); }

  async #send(alerts, word, send) {
    const those = alerts.filter((alert) => !this.pending.has(alert.alert_id)), labels = word.endsWith("alert");
    if (!those.length) return;
    for (const alert of those) this.pending.set(alert.alert_id, { alert, word: "sending" });
    this.context.changed();
    try {
      await send(those);
    } catch (error) {
      for (const alert of those) this.pending.delete(alert.alert_id);
      this.context.changed();
      this.context.refused(error, `The alert was not ${labels ? "labelled" : word}: ${error.message}.`);
      return;
    }
    // Accepted (202): the alert itself changes when its session has folded it.
    const sent = those.map((alert) => ({ alert, word })), isKnown = ({ alert }) => this.context.board.alerts.get(alert.alert_id) === alert;
    for (const each of sent) {
      this.marked.delete(each.alert.alert_id);
      if (isKnown(each)) this.pending.set(each.alert.alert_id, each);
      else this.pending.delete(each.alert.alert_id);
    }
    const said = labels ? `Labelled as a ${word}` : `${word[0].toUpperCase()}${word.slice(1)}`;
    this.context.say(those.length === 1 ? said : `${said}: ${several(those.length, "alert")}`);
    this.context.changed();
    setTimeout(() => {
      for (const each of sent) if (this.pending.get(each.alert.alert_id) === each) this.pending.delete(each.alert.alert_id);
      this.context.changed();
    }, SETTLES_WITHIN_MS);
  }
}

const textarea = (given = {}) => el("textarea", { rows: "3", maxlength: "1000", ...given });
