/** Client of Turntide: live memory of conversations, three lines from a chatbot. Types are those of `/openapi.json`. */
import type { components } from "./api.js";

type Schemas = components["schemas"];
/** A turn that is stored durably in the log. */
export type Accepted = Schemas["AcceptedTurn"];
export type Turn = Schemas["IndexedTurn"];
export type RecentTurn = Schemas["TurnAnswer"];
export type Fact = Schemas["FactAnswer"];
export type Episode = Schemas["EpisodeAnswer"];
export type Segments = Schemas["SegmentedSession"];
export type Profile = Schemas["ProfileAnswer"];
export type Found = Schemas["Found"];
export type Context = Schemas["AssembledContext"];
export type Erasure = Schemas["ErasureStanding"];
export type Category = Schemas["FactCategory"];

/** A chat message as OpenAI's API has it; besides `message_id` and `timestamp`. */
export interface Message {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content?: string | null | { type: string; [part: string]: unknown }[];
  tool_calls?: { id: string; type: "function"; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
  name?: string;
  message_id?: string;
  timestamp?: string;
}

/** Added turns. Pass it as `after` to a read that must see them. */
export interface Added {
  sessionId: string;
  turns: Accepted[];
}

/** A time, or a day as `2026-01-31`, in UTC; both ends of a window are inclusive. */
export interface Within {
  since?: Date | string;
  until?: Date | string;
}

export interface Whose {
  userId: string;
  /** Id of the session. Default: the session of this object with the user. */
  sessionId?: string | undefined;
  /** `visible` returns when reads find the turns. */
  wait?: "accepted" | "visible" | undefined;
}

/** Result of changing a fact; without success the change is accepted, but not visible yet. */
export interface FactChange {
  success: boolean;
  fact?: Fact | null;
  already_gone?: boolean;
}

export interface Options {
  /** URL of the server. */
  url?: string | undefined;
  /** Id of the app. Users of two apps are never the same. */
  app?: string | undefined;
  /** Bearer token, if the server has tokens. */
  token?: string | undefined;
  /** URL for turns, if gateways have their own. */
  writeUrl?: string | undefined;
  /** Time limit of one request; waiting for a turn adds ten seconds. */
  timeoutMs?: number;
  /** How often a request is repeated after no response, or 429, 502 or 503. */
  retries?: number;
  /** Your own `fetch`. */
  fetch?: typeof fetch;
}

/** Base of all errors of this client; none contains text of a turn. */
export class TurntideError extends Error {
  override name = "TurntideError";
}
/** No response after all tries. */
export class Unreachable extends TurntideError {
  override name = "Unreachable";
}
/** The change is accepted, but was not visible in time. */
export class NotYet extends TurntideError {
  override name = "NotYet";
}
/** The server refused a request. */
export class ApiError extends TurntideError {
  override name = "ApiError";
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly errors: { field: string; detail: string }[] = [],
  ) {
    super(`${status} ${code}: ${detail}`);
  }
}

interface Asked {
  query?: Record<string, string | number | boolean | undefined>;
  body?: Record<string, unknown>;
  writes?: boolean;
}

const TRIED_AGAIN = new Set([429, 502, 503]);
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 30_000;
const VISIBLE_WITHIN_MS = 10_000;
const PROOF_EACH_MS = 250;
const PART_CHARS = 512 * 1024;
const PART_MESSAGES = 200;

/** Memory of an app's users. Repeated requests change nothing: turns have ids that the server recognises. */
export class Memory {
  readonly app: string;
  readonly #options: Options;
  readonly #url: string;
  readonly #sessions = new Map<string, string>();

  constructor(options: Options = {}) {
    this.#options = options;
    this.#url = (options.url ?? "http://127.0.0.1:8702").replace(/\/+$/, "");
    this.app = options.app ?? "default";
  }

  /** Add messages: text of the user, a message, or a list of them; on return they are stored durably in the log. */
  async add(
    messages: string | Message | Message[],
    { userId, sessionId, wait = "accepted" }: Whose,
  ): Promise<Added> {
    const session = sessionId ?? this.sessionOf(userId);
    const listed = typeof messages === "string" ? [{ role: "user" as const, content: messages }] : [messages].flat();
    const turns: Accepted[] = [];
    for (const part of inParts(listed.map((each) => ({ message_id: crypto.randomUUID(), ...each })))) {
      const body = { user_id: userId, session_id: session, messages: part };
      turns.push(...(await this.#ask<{ accepted: Accepted[] }>("POST", "/v1/turns", { body, writes: true })).accepted);
    }
    if (wait === "visible") {
      const message_ids = turns.slice(-PART_MESSAGES).map((each) => each.message_id);
      const body = { session_id: session, message_ids, timeout_ms: VISIBLE_WITHIN_MS };
      const numbers = await this.#ask<{ message_id: string; turn: number }[]>("POST", "/v1/turns/wait", { body });
      for (const { message_id, turn } of numbers) turns.find((each) => each.message_id === message_id)!.turn = turn;
    }
    return { sessionId: session, turns };
  }

  /** End a session. */
  async end(sessionId: string): Promise<void> {
    await this.#ask("POST", `/v1/sessions/${part(sessionId)}/end`, { body: {}, writes: true });
  }

  /** Search turns or episodes of a user, a session or the whole app, by words and similarity. */
  async search(
    query: string,
    options: { userId?: string; sessionId?: string; kind?: "turns" | "episodes"; limit?: number } & Within = {},
  ): Promise<Found> {
    const { userId: user_id, sessionId: session_id, kind = "turns", limit: top_k = 10, since, until } = options;
    const body = { query, user_id, session_id, kind, top_k, from: since, to: until };
    return this.#ask("POST", "/v1/search", { body });
  }

  /** Build a prompt for a question within a token budget: facts, episodes, related turns, and the last turns. */
  async context(
    query: string,
    options: { userId: string; sessionId?: string; tokenBudget?: number; recentTurns?: number; after?: Added } & Within,
  ): Promise<Context> {
    const { userId: user_id, sessionId: session_id, tokenBudget = 2_000, recentTurns = 10, since, until } = options;
    const last = options.after?.turns.at(-1);
    const after = last && {
      session_id: last.session_id,
      message_id: last.message_id,
      timeout_ms: VISIBLE_WITHIN_MS,
    };
    const within = { from: since, to: until };
    const body = { query, user_id, session_id, token_budget: tokenBudget, recent_turns: recentTurns, ...within, after };
    return this.#ask("POST", "/v1/context", { body });
  }

  /** List the facts of a user, active facts first, most important first. */
  async facts(userId: string, options: { category?: Category; includePast?: boolean } = {}): Promise<Fact[]> {
    const query = { category: options.category, include_past: options.includePast };
    return this.#ask("GET", `/v1/users/${part(userId)}/facts`, { query });
  }

  /** List the episodes of a user, latest first. */
  async episodes(userId: string, { limit = 20 } = {}): Promise<Episode[]> {
    return this.#ask("GET", `/v1/users/${part(userId)}/episodes`, { query: { limit } });
  }

  /** List the last turns of a user across sessions, oldest first. */
  async recent(userId: string, { last = 10 } = {}): Promise<RecentTurn[]> {
    return this.#ask("GET", `/v1/users/${part(userId)}/recent`, { query: { last } });
  }

  /** List the last turns of a session, oldest first. */
  async turns(sessionId: string, { last = 100, after }: { last?: number; after?: Added } = {}): Promise<Turn[]> {
    const after_message = after?.turns.at(-1)?.message_id;
    const query = { last, after_message, timeout_ms: after_message && VISIBLE_WITHIN_MS };
    return this.#ask("GET", `/v1/sessions/${part(sessionId)}/turns`, { query });
  }

  /** Return summaries of a session's segments, about five turns each, and the turns since the last segment. */
  async segments(sessionId: string, { last = 20 } = {}): Promise<Segments> {
    return this.#ask("GET", `/v1/sessions/${part(sessionId)}/segments`, { query: { last } });
  }

  /** Return the last risk profile of a session, written every five turns and at changes; `ApiError` 404 before. */
  async profile(sessionId: string): Promise<Profile> {
    return this.#ask("GET", `/v1/sessions/${part(sessionId)}/profile`, { query: {} });
  }

  /** Return the app of a session, of the token's apps; `ApiError` 404 for none, 422 if several have it. */
  async appOf(sessionId: string): Promise<string> {
    return (await this.#ask<Schemas["SessionApp"]>("GET", `/v1/sessions/${part(sessionId)}/app`)).app_id;
  }

  /** Set a fact of a user. An earlier value moves to its history. */
  async setFact(userId: string, category: Category, key: string, value: string, importance?: number): Promise<FactChange> {
    return this.#ask("PUT", factPath(userId, category, key), { query: {}, body: { value, importance } });
  }

  /** Pin a fact, so that later messages cannot replace it, or unpin it. */
  async pinFact(userId: string, category: Category, key: string, pinned = true): Promise<FactChange> {
    return this.#ask("PUT", factPath(userId, category, key), { query: {}, body: { pinned } });
  }

  /** End a fact; its value moves to its history. */
  async deleteFact(userId: string, category: Category, key: string): Promise<FactChange> {
    return this.#ask("DELETE", factPath(userId, category, key), { query: {} });
  }

  /** Set the mode of a user's memory: `active`, `read_only` or `off`. Existing memory is kept; `forget` deletes it. */
  async setMemoryMode(userId: string, mode: "active" | "read_only" | "off"): Promise<{ changed: boolean }> {
    return this.#ask("PUT", `/v1/users/${part(userId)}/mode`, { query: {}, body: { mode } });
  }

  /** Permanently erase a user or a session from all stores; with `wait`, return only when that is proved. */
  async forget(
    whom: { userId: string } | { sessionId: string },
    { wait = false, withinMs = 120_000 } = {},
  ): Promise<Erasure> {
    const body = "userId" in whom ? { user_id: whom.userId } : { session_id: whom.sessionId };
    const { request_id } = await this.#ask<{ request_id: string }>("POST", "/v1/erase", { body });
    for (let waited = 0; wait; waited += PROOF_EACH_MS) {
      const standing = await this.#ask<Erasure>("GET", `/v1/erase/${request_id}`);
      if (standing.proved) return standing;
      if (waited >= withinMs) throw new NotYet(`erasure ${request_id} is not proved after ${withinMs} ms`);
      await pause(PROOF_EACH_MS);
    }
    return { request_id, proved: false, proof: null };
  }

  /** The session of this object with a user, used by default. */
  sessionOf(userId: string): string {
    const known = this.#sessions.get(userId) ?? crypto.randomUUID();
    this.#sessions.set(userId, known);
    return known;
  }

  /** The answer's JSON, after as many tries as it takes. */
  async #ask<T>(method: string, path: string, { query, body, writes }: Asked = {}): Promise<T> {
    const { token, writeUrl, timeoutMs = 10_000, retries = 4, fetch: own = fetch } = this.#options;
    const base = writes && writeUrl ? writeUrl.replace(/\/+$/, "") : this.#url;
    const url = new URL(base + path);
    for (const [name, value] of Object.entries(query ? { app_id: this.app, ...query } : {})) {
      if (value !== undefined) url.searchParams.set(name, String(value));
    }
    const asked: RequestInit = { method, headers: { "Content-Type": "application/json" } };
    if (token) asked.headers = { ...asked.headers, Authorization: `Bearer ${token}` };
    if (body) asked.body = JSON.stringify(query ? body : { app_id: this.app, ...body });
    for (let tried = 0; ; tried += 1) {
      const signal = AbortSignal.timeout(timeoutMs + VISIBLE_WITHIN_MS);
      const answer = await own(url, { ...asked, signal }).catch((error: Error) => error);
      if (!(answer instanceof Error) && answer.ok) return (await answer.json()) as T;
      const told = answer instanceof Error ? NaN : Number.parseFloat(answer.headers.get("Retry-After") ?? "");
      const pauseMs = Number.isNaN(told) ? (0.5 + Math.random() / 2) * FIRST_PAUSE_MS * 2 ** tried : told * 1_000;
      const again = answer instanceof Error || TRIED_AGAIN.has(answer.status);
      if (!again || tried === retries || pauseMs > LONGEST_PAUSE_MS) {
        if (answer instanceof Error) throw new Unreachable(`${base} does not answer (${answer.name})`);
        throw await refusal(answer);
      }
      await pause(pauseMs);
    }
  }
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** A name as one part of a path; some would take `.` and `..` for steps. */
const part = (name: string) => encodeURIComponent(name).replaceAll(".", "%2E");

const factPath = (...names: [string, string, string]) => `/v1/users/${part(names[0])}/facts/${part(names[1])}/${part(names[2])}`;

/** Messages in their order, so many as one request takes. */
function inParts(messages: Message[]): Message[][] {
  const parts: Message[][] = [];
  let chars = 0;
  for (const message of messages) {
    const length = JSON.stringify(message).length;
    const last = parts.at(-1);
    if (last && chars + length <= PART_CHARS && last.length < PART_MESSAGES) {
      last.push(message);
      chars += length;
    } else {
      parts.push([message]);
      chars = length;
    }
  }
  return parts;
}

async function refusal(answer: Response): Promise<TurntideError> {
  const said = (await answer.json().catch(() => ({}))) as Partial<ApiError>;
  const { code = "unknown", detail = "the answer says no more: is this the address of a Turntide?", errors } = said;
  return code === "turn_not_visible" ? new NotYet(detail) : new ApiError(answer.status, code, detail, errors);
}
