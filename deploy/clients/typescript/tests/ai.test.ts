/** The middleware with the real AI SDK and its mock model. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { generateText, simulateReadableStream, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
import { turntideMiddleware } from "../src/ai.js";
import { Memory } from "../src/index.js";

type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type Streamed = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>;
type Piece = Streamed["stream"] extends ReadableStream<infer P> ? P : never;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const answers = (content: Generated["content"]): Generated => ({
  content,
  finishReason: { unified: content[0]?.type === "tool-call" ? "tool-calls" : "stop", raw: undefined },
  usage,
  warnings: [],
});

test("a model is reminded, and what it is asked and answers is remembered once", async () => {
  const memory = new Memory({ url: process.env.TURNTIDE_URL, app: `test-${randomUUID()}` });
  const call = { type: "tool-call" as const, toolCallId: "c-1", toolName: "weather", input: '{"city":"Oslo"}' };
  const pieces: Piece[] = [
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "You live " },
    { type: "text-delta", id: "1", delta: "in Oslo." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage },
  ];
  const mock = new MockLanguageModelV4({
    doGenerate: [answers([call]), answers([{ type: "text", text: "It rains." }])],
    doStream: { stream: simulateReadableStream({ chunks: pieces }) },
  });
  const middleware = turntideMiddleware(memory, { userId: "u-1", sessionId: "s-1", wait: "visible" });
  const model = wrapLanguageModel({ model: mock, middleware });
  const weather = tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "rain" });

  const told = await generateText({
    model, tools: { weather }, stopWhen: stepCountIs(2), system: "Be brief.", prompt: "I live in Oslo. Weather?",
  });
  const asked = streamText({ model, prompt: "Where do I live?" });

  assert.equal(told.text, "It rains.");
  assert.equal(await asked.text, "You live in Oslo.");
  assert.match(JSON.stringify(mock.doStreamCalls[0]?.prompt[0]), /location: Oslo/);
  assert.deepEqual((await memory.turns("s-1")).map((turn) => [turn.role, turn.content]), [
    ["user", "I live in Oslo. Weather?"],
    ["tool", '{"name":"weather","arguments":{"city":"Oslo"}}'],
    ["tool", "rain"],
    ["assistant", "It rains."],
    ["user", "Where do I live?"],
    ["assistant", "You live in Oslo."],
  ]);
});
