/** A chatbot that remembers its user from one run to the next: tell it your name, then ask for it. */
import { Memory } from "turntide-client";

const memory = new Memory({ url: process.env.TURNTIDE_URL, app: process.env.APP ?? "chatbot" });

/** Stands in for a language model. */
const scripted = (prompt: string, question: string) =>
  prompt.includes("name: Alex") && question.includes("?") ? "You are Alex." : "Nice to meet you!";

const question = process.argv[2] ?? "Hi, my name is Alex.";
const { prompt } = await memory.context(question, { userId: "u-1" });
const answer = scripted(prompt, question);
await memory.add(
  [{ role: "user", content: question }, { role: "assistant", content: answer }],
  { userId: "u-1", wait: "visible" },
);
console.log(answer);
