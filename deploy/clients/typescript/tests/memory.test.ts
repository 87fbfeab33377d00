/** The client against the real thing. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { ApiError, Memory, NotYet, Unreachable } from "../src/index.js";

const url = process.env.TURNTIDE_URL;
assert.ok(url, "these tests ask a running Turntide: `.ci/clients` starts one and runs them");
const memoryOf = (options = {}) => new Memory({ url, app: `test-${randomUUID()}`, ...options });
const said = [
  { role: "user" as const, content: "My name is Alex and I live in Oslo.", message_id: "m-1" },
  { role: "assistant" as const, content: "Hello Alex." },
];

test("what is added is found", async () => {
  const memory = memoryOf();
  const added = await memory.add(said, { userId: "u-1", wait: "visible" });
  const later = await memory.add("I moved to Bergen.", { userId: "u-1" });

  const context = await memory.context("Where do I live?", { userId: "u-1", after: later });

  assert.deepEqual(added.turns.map((each) => each.turn), [0, 1]);
  assert.match(context.prompt, /Bergen/);
  assert.ok((await memory.facts("u-1", { category: "identity" })).some((fact) => fact.value === "Alex"));
  assert.deepEqual((await memory.recent("u-1", { last: 1 })).map((turn) => turn.content), ["I moved to Bergen."]);
  assert.equal((await memory.turns(added.sessionId, { after: later })).length, 3);
  assert.equal(await memoryOf().appOf(added.sessionId), memory.app);
  assert.match((await memory.search("Alex Oslo", { userId: "u-1", limit: 1 })).turns![0]!.turn.content, /Oslo/);
  const tomorrow = new Date(Date.now() + 86_400_000);
  assert.deepEqual((await memory.search("Alex Oslo", { userId: "u-1", since: tomorrow })).turns ?? [], []);
  const asked = { userId: "u-1", recentTurns: 0 };
  assert.notEqual((await memory.context("Alex Oslo", asked)).found.length, 0);
  assert.deepEqual((await memory.context("Alex Oslo", { ...asked, since: tomorrow })).found, []);
  assert.deepEqual(await memory.episodes("u-1"), []);
  await memory.end(added.sessionId);
});

test("a repeat changes nothing, a long history keeps its order", async () => {
  const memory = memoryOf();
  const long = Array.from({ length: 230 }, (_, n) => ({ ...said[0]!, content: `${n}`, message_id: `m-${n}` }));
  for (const _ of [1, 2]) await memory.add(long, { userId: "u-1", sessionId: "a/b ..", wait: "visible" });

  const turns = await memory.turns("a/b ..", { last: 300 });
  let short = await memory.segments("a/b ..", { last: 2 });
  for (let tries = 0; short.segments.length < 2 && tries < 100; tries += 1) {
    await new Promise((done) => setTimeout(done, 100));
    short = await memory.segments("a/b ..", { last: 2 });
  }

  assert.deepEqual(turns.map((turn) => turn.content), long.map((each) => each.content));
  assert.equal(short.segments.at(-1)!.last_turn - short.segments[0]!.first_turn, 9);
});

test("facts are corrected", async () => {
  const memory = memoryOf();
  await memory.add(said, { userId: "u-1", wait: "visible" });

  assert.ok((await memory.setFact("u-1", "identity", "location", "Bergen")).success);
  assert.ok((await memory.pinFact("u-1", "identity", "location")).success);
  assert.ok((await memory.deleteFact("u-1", "identity", "name")).success);
  assert.deepEqual((await memory.facts("u-1")).map((fact) => fact.value), ["Bergen"]);
});

test("a memory is switched off", async () => {
  const memory = memoryOf();
  await memory.add(said, { userId: "a/b ..", wait: "visible" });

  assert.ok((await memory.setMemoryMode("a/b ..", "off")).changed);
  assert.deepEqual((await memory.context("Who am I?", { userId: "a/b .." })).facts, []);
});

test("what is wrong is said", async () => {
  const memory = memoryOf();
  const refused = (error: unknown) => error instanceof ApiError && error.status === 422 && error.errors[0]?.field === "top_k";
  await assert.rejects(memory.search("anything", { userId: "u-1", limit: 0 }), refused);
  await assert.rejects(memoryOf({ url: "http://127.0.0.1:9", retries: 1 }).facts("u-1"), Unreachable);
  await assert.rejects(memory.forget({ userId: "nobody" }, { wait: true, withinMs: -1 }), NotYet);
  assert.equal((await memory.forget({ sessionId: "none" })).proved, false);
});

test("a request is tried again as it was, after what the server says", async () => {
  const bodies: unknown[] = [];
  const busyOnce = async (...asked: Parameters<typeof fetch>) => {
    bodies.push(asked[1]?.body);
    if (bodies.length > 1) return fetch(...asked);
    return new Response("{}", { status: 503, headers: { "Retry-After": "0.01" } });
  };
  const memory = memoryOf({ fetch: busyOnce });

  await memory.add("Hi", { userId: "u-1" });

  assert.equal(bodies.length, 2);
  assert.equal(bodies[0], bodies[1]);
});
