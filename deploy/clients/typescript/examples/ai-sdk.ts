/** Vercel AI SDK: a model that knows in a second conversation what was said in the first. */
import { generateText, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { Memory } from "turntide-client";
import { turntideMiddleware } from "turntide-client/ai";

const scripted = new MockLanguageModelV4({
  async doGenerate({ prompt }) {
    const text = JSON.stringify(prompt).includes("location: Oslo") ? "You live in Oslo." : "Noted.";
    const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
    return { content: [{ type: "text", text }], finishReason: { unified: "stop", raw: undefined }, usage, warnings: [] };
  },
});

const memory = new Memory({ url: process.env.TURNTIDE_URL, app: process.env.APP ?? "ai-sdk" });
for (const [sessionId, prompt] of [["s-1", "I live in Oslo."], ["s-2", "Where do I live?"]] as const) {
  const model = wrapLanguageModel({
    model: scripted, // stands in for a language model
    middleware: turntideMiddleware(memory, { userId: "u-1", sessionId, wait: "visible" }),
  });
  console.log((await generateText({ model, prompt })).text);
}
