// What operators put right in a session: the text of a turn, the importance and tags of a topic, and feedback.

import * as client from "./client.js";
import { el } from "./dom.js";

/** Asks for something in a dialog, then sends it; `send` gets what the fields hold. */
const ask = (context, title, note, fields, done, send) => {
  const controls = fields.map(([label, control]) => [el("label", { for: control.id }, label), control]);
  const dialog = el("dialog", { class: "ask", "aria-labelledby": "change-title" },
    el("form", { method: "dialog", onsubmit: async (event) => {
      event.preventDefault();
      dialog.close();
      try {
        await send(...fields.map(([, control]) => control.value));
        context.say(done);
      } catch (error) {
        context.refused(error, `Nothing was changed: ${error.message}.`);
      }
    } },
    el("h2", { id: "change-title" }, title),
    el("p", { class: "faint" }, note),
    ...controls.flat(),
    el("p", { class: "buttons" },
      el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      el("button", { type: "submit", class: "main" }, "Save"))));
  context.ask(dialog, fields[0][1]);
};

export const correctTurn = (context, session, turn, text) => {
  const content = el("textarea", { rows: "8", id: "turn-text" });
  content.value = text;
  ask(context, `Put turn ${turn.turn} right`, "Readers see the new text. The old one stays in the archive until it is erased; risk, alerts and summaries stay as they are.",
    [["Text", content], ["Reason (optional)", el("input", { id: "turn-reason", maxlength: "1000" })]],
    "The new text is in the log", (written, reason) => client.correctTurn(session, turn.turn, written, reason.trim()));
};

export const rateTopic = (context, session, topic) => {
  const importance = el("input", { id: "topic-importance", type: "number", min: "0", max: "1", step: "0.05" });
  importance.value = String(topic.importance);
  const tags = el("input", { id: "topic-tags", placeholder: "as they are" });
  ask(context, "Rate or tag a topic", "Tags replace those it has; they are told apart by commas.",
    [["Importance, 0 to 1", importance], ["Tags", tags]],
    "It is in the log", (rated, named) => client.adjustTopic(session, topic.topic, Number(rated), named.split(",").map((tag) => tag.trim()).filter(Boolean)));
};

export const giveFeedback = async (context, session, turn, value) => {
  try {
    await client.giveFeedback(session, turn.turn, value);
    context.say(value > 0 ? "Liked" : "Disliked");
  } catch (error) {
    context.refused(error, `The feedback was not taken: ${error.message}.`);
  }
};
