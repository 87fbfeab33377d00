// Server-sent events over fetch (EventSource cannot send a header), opened again with growing pauses.

const SILENT_MS = 45_000; // three pings
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const LARGEST_EVENT = 32 * 1024 * 1024;

/** Reads events from a body; calls `take(name, data)` for each and `heard()` for every piece that comes. */
export const readEvents = async (body, take, heard) => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let name = "message", data = [], rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    rest += value;
    if (rest.length > LARGEST_EVENT) throw new Error("an event is longer than this page takes");
    if (!/[\r\n]/.test(value)) continue; // in the middle of a long line
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) take(name, data.join("\n"));
        name = "message"; data = [];
      } else if (line.startsWith("event:")) name = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    }
  }
};

/** How long to wait before the next try; half of it by chance, so that many pages do not return at once. */
export const pauseMs = (failures, chance = Math.random()) =>
  Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10)) * (0.5 + chance / 2);

/**
 * Keeps a stream open.
 *
 * `connect(signal)` answers a response; `take(name, data)` gets parsed events; `began()` is called before the first of a
 * connection; `told({state, since, pauseMs})` says how it stands; `refused(error)` ends it on 401 and 403.
 */
export class Stream {
  #stopped = false;
  #abort = null;
  #failures = 0;
  #timer = 0;
  #wake = null;
  #lastHeard = 0;
  #first = true;

  constructor(parts) {
    this.parts = parts;
    this.hasten = () => { if (!document.hidden) this.#wake?.(); };
    addEventListener("online", this.hasten);
    document.addEventListener("visibilitychange", this.hasten);
    this.#run();
  }

  stop() {
    this.#stopped = true;
    this.#abort?.abort();
    this.#wake?.();
    clearInterval(this.#timer);
    removeEventListener("online", this.hasten);
    document.removeEventListener("visibilitychange", this.hasten);
  }

  async #run() {
    let staleSince = null;
    const { connect, take, began, told, refused } = this.parts;
    while (!this.#stopped) {
      this.#abort = new AbortController();
      told({ state: staleSince ? "reconnecting" : "connecting", since: staleSince });
      try {
        const answer = await connect(this.#abort.signal);
        began();
        this.#watchSilence();
        await readEvents(answer.body, (name, data) => {
          take(name, JSON.parse(data));
          if (staleSince || this.#failures || this.#first) told({ state: "live" });
          this.#first = false;
          this.#failures = 0;
          staleSince = null;
        }, () => { this.#lastHeard = Date.now(); });
      } catch (error) {
        if (error.status === 401 || error.status === 403) {
          this.stop();
          refused(error);
        }
      }
      clearInterval(this.#timer);
      this.#abort.abort();
      if (this.#stopped) return;
      staleSince ??= this.#lastHeard || Date.now();
      const wait = pauseMs(this.#failures++);
      told({ state: "reconnecting", since: staleSince, pauseMs: wait });
      await new Promise((resolve) => { this.#wake = resolve; setTimeout(resolve, wait); });
      this.#wake = null;
    }
  }

  #watchSilence() {
    this.#lastHeard = Date.now();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => { if (Date.now() - this.#lastHeard > SILENT_MS) this.#abort.abort(); }, 5_000);
  }
}
