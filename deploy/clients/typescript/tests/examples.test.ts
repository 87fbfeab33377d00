/** The examples, as the documentation shows them, each in an app of its own. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

const run = (app: string, name: string, ...given: string[]) => {
  const file = new URL(`../examples/${name}.js`, import.meta.url).pathname;
  return execFileSync(process.execPath, [file, ...given], { env: { ...process.env, APP: app }, encoding: "utf8" });
};

test("a chatbot remembers across two runs", () => {
  const app = randomUUID();
  assert.equal(run(app, "chatbot", "Hi, my name is Alex."), "Nice to meet you!\n");
  assert.equal(run(app, "chatbot", "What is my name?"), "You are Alex.\n");
});

test("a wrapped model remembers across two conversations", () => {
  assert.equal(run(randomUUID(), "ai-sdk"), "Noted.\nYou live in Oslo.\n");
});
