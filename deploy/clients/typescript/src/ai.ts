/** Vercel AI SDK: a middleware that gives any model its memory (`wrapLanguageModel({ model, middleware })`). */
import type { LanguageModelMiddleware } from "ai";
import type { Memory, Message, Whose } from "./index.js";

type Params = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"];
type Prompt = Params["prompt"];
type Answer = { type: string; text?: string; toolCallId?: string; toolName?: string; input?: string };

export interface Remembered extends Whose {
  /** How long what is put before the model may be. */
  tokenBudget?: number;
}

/**
 * Puts what matters to the last question before the model, and remembers what was asked and answered.
 *
 * A prompt repeats the conversation: new is what follows the assistant's last message.
 */
export function turntideMiddleware(memory: Memory, whose: Remembered): LanguageModelMiddleware {
  const remember = (prompt: Prompt, answer: Answer[]) =>
    memory.add([...fresh(prompt).flatMap(messages), ...answered(answer)], whose);
  return {
    specificationVersion: "v4",

    async transformParams({ params }) {
      const asked = params.prompt.filter((each) => each.role === "user").map((each) => text(each.content)).at(-1);
      if (!asked?.trim()) return params;
      const { userId, tokenBudget = 1_500 } = whose;
      const known = await memory.context(asked, { userId, tokenBudget, recentTurns: 0 });
      const start = params.prompt.findIndex((each) => each.role !== "system");
      const prompt = params.prompt.toSpliced(start, 0, { role: "system", content: known.prompt });
      return { ...params, prompt };
    },

    async wrapGenerate({ doGenerate, params }) {
      const result = await doGenerate();
      await remember(params.prompt, result.content);
      return result;
    },

    async wrapStream({ doStream, params }) {
      const { stream, ...rest } = await doStream();
      const answer: Answer[] = [];
      const noting = new TransformStream({
        transform(piece, onward) {
          if (piece.type === "text-delta") answer.push({ type: "text", text: piece.delta });
          if (piece.type === "tool-call") answer.push(piece);
          onward.enqueue(piece);
        },
        async flush() {
          await remember(params.prompt, answer);
        },
      });
      return { stream: stream.pipeThrough(noting), ...rest };
    },
  };
}

function fresh(prompt: Prompt): Prompt {
  const last = prompt.findLastIndex((each) => each.role === "assistant");
  return prompt.slice(last + 1).filter((each) => each.role !== "system");
}

function messages(said: Prompt[number]): Message[] {
  if (said.role !== "tool") return [{ role: said.role, content: text(said.content) }];
  return said.content.flatMap((each) =>
    each.type === "tool-result"
      ? [{ role: "tool" as const, tool_call_id: each.toolCallId, name: each.toolName, content: output(each.output) }]
      : [],
  );
}

function output(given: { type: string; value?: unknown }): string {
  return typeof given.value === "string" ? given.value : JSON.stringify(given.value ?? given.type);
}

function answered(content: Answer[]): Message[] {
  const said = content.filter((each) => each.type === "text").map((each) => each.text).join("");
  const calls = content
    .filter((each) => each.type === "tool-call")
    .map(({ toolCallId = "", toolName = "", input = "" }) => ({
      id: toolCallId,
      type: "function" as const,
      function: { name: toolName, arguments: input },
    }));
  if (!said && !calls.length) return [];
  return [{ role: "assistant", content: said || null, ...(calls.length && { tool_calls: calls }) }];
}

function text(content: Prompt[number]["content"]): string {
  if (typeof content === "string") return content;
  return content.map((each) => (each.type === "text" ? each.text : `[${each.type}]`)).join("\n\n");
}
