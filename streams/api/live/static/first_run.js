// What is missing where no session has been seen: the first step that is not done names the command for it.

import { el } from "./dom.js";
import { several } from "./format.js";
import { mark } from "./marks.js";

/** From broker to sessions, each `{done, what, help}`; `done` null: not known before the steps above it are. */
const stepsOf = ({ reading: { kafka, turns } = { kafka: "connecting", turns: 0 }, roles }) => {
  const answers = kafka === "connecting" ? null : kafka !== "away", topics = answers ? kafka === "read" : null;
  const folds = roles.find(({ role }) => role === "sessions");
  const works = !folds || folds.state === "unknown" ? null : folds.state === "ready";
  return [
    { done: answers, what: answers === false ? "Kafka does not answer" : "A Kafka broker", commands: ["turntide kafka start"], help: "runs one here; TURNTIDE_KAFKA=host:9092 names another one." },
    { done: topics, what: topics === false ? "Kafka has no topics of Turntide" : "Topics", commands: ["turntide topics apply"], help: "creates them." },
    { done: works, what: works === false ? `The sessions role is ${folds.state === "away" ? "away" : "not ready"}` : "The sessions role", commands: ["turntide worker all"], help: "runs all roles; Health says what each lacks." },
    { done: topics ? turns > 0 : null, what: turns ? `${several(turns, "record")} of turns read` : "No turn has been read yet", commands: ["turntide demo", "turntide produce chats.jsonl --format dialogues"], help: "plays conversations, or sends yours; assistants send theirs over HTTP." },
  ];
};

/** The page for an empty board. */
export const firstRun = (board) => {
  const steps = stepsOf(board), missing = steps.find(({ done }) => done === false);
  const title = missing ? "Nothing to show yet" : "Nothing to show yet: sessions appear as turns arrive";
  return el("section", { class: "panel first-run", "aria-label": "What is missing" }, el("h2", {}, title),
    el("ol", {}, ...steps.map((step) => el("li", { "data-done": String(step.done) },
      mark(step.done === null ? "unknown" : step.done ? "ready" : "away", step.what),
      step === missing ? el("p", {}, ...step.commands.flatMap((command, at) => [at ? " or " : "", el("code", {}, command)]), " ", step.help) : null))),
    el("p", { class: "faint" }, el("code", {}, "turntide up"), " starts broker, topics and roles in one; ", el("code", {}, "turntide doctor"), " checks every setting."));
};
