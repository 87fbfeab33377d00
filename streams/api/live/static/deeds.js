// What operators do to alerts. It goes to the log and is not taken back, so labels ask once more.

import * as client from "./client.js";
import { el } from "./dom.js";

const SETTLES_WITHIN_MS = 30_000;

/** By key: what it is called, what it does, and whether it can be done to an alert that stands like this. */
export const DEEDS = {
  a: { text: "Acknowledge", help: "acknowledge", does: (deeds, alert) => deeds.acknowledge(alert), may: (alert) => alert.status === "firing" },
  t: { text: "True alert", help: "label as a true alert", does: (deeds, alert) => deeds.label(alert, true) },
  f: { text: "False alert", help: "label as a false alert", does: (deeds, alert) => deeds.label(alert, false) },
};

/** Buttons of an alert; `latest()` is how it stands when one is pressed, `keys` whether its key does the same. */
export const deedButtons = (deeds, alert, { latest = () => alert, keys = false } = {}) => {
  const pending = Boolean(deeds.word(alert));
  return el("p", { class: "buttons" }, ...Object.entries(DEEDS).map(([key, { text, does, may }]) => el("button", {
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

  constructor(context) { this.context = context; }

  /** Forgets what has arrived: the alert has changed since. */
  settle(alerts) {
    for (const [id, sent] of this.pending) {
      if (alerts.get(id) !== sent.alert && alerts.has(id)) this.pending.delete(id);
    }
  }

  word(alert) { return this.pending.get(alert.alert_id)?.word ?? null; }

  async acknowledge(alert) {
    if (alert.status !== "firing") {
      this.context.fail(`This alert is ${alert.status}: only one that is firing can be acknowledged.`);
      return;
    }
    await this.#send(alert, "acknowledged", () => client.acknowledge(alert));
  }

  /** Asks for a reason, then sends. */
  label(alert, right) {
    const reason = el("textarea", { rows: "3", maxlength: "1000", id: "label-reason" });
    const what = right ? "true alert" : "false alert";
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "label-title" },
      el("form", { method: "dialog", onsubmit: (event) => {
        event.preventDefault();
        dialog.close();
        this.#send(alert, what, () => client.label(alert, right, reason.value.trim()));
      } },
      el("h2", { id: "label-title" }, `Label as a ${what}?`),
      el("p", { class: "reason" }, alert.sentence),
      el("p", { class: "faint" }, "Back-tests and calibration measure by it. It cannot be taken back; a later label counts instead."),
      el("label", { for: "label-reason" }, "Reason (optional)"), reason,
      el("p", { class: "buttons" },
        el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
        el("button", { type: "submit", class: "main" }, `Label as ${what}`))));
    reason.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); dialog.querySelector("form").requestSubmit(); }
    });
    this.context.ask(dialog, reason);
  }

  async #send(alert, word, send) {
    if (this.pending.has(alert.alert_id)) return;
    this.pending.set(alert.alert_id, { alert, word: "sending" });
    this.context.changed();
    try {
      await send();
    } catch (error) {
      this.pending.delete(alert.alert_id);
      this.context.changed();
      this.context.refused(error, `The alert was not ${word.endsWith("alert") ? "labelled" : word}: ${error.message}.`);
      return;
    }
    // Accepted (202): the alert itself changes when its session has folded it.
    const sent = { alert, word };
    if (this.context.board.alerts.get(alert.alert_id) === alert) this.pending.set(alert.alert_id, sent);
    else this.pending.delete(alert.alert_id);
    this.context.say(word.endsWith("alert") ? `Labelled as a ${word}` : "Acknowledged");
    this.context.changed();
    setTimeout(() => {
      if (this.pending.get(alert.alert_id) !== sent) return;
      this.pending.delete(alert.alert_id);
      this.context.changed();
    }, SETTLES_WITHIN_MS);
  }
}
