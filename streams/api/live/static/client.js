// What the page asks the server. The token stays in this tab's storage and goes out in a header only.

import { noteServerTime } from "./format.js";

const KEY = "turntide.token";
const ROOT = "/v1/live";

/** A refusal: `status` 0 where no answer came. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Whether asking again may help. */
export const mayPass = ({ status }) => status === 0 || status === 429 || status >= 500;

export const token = {
  get() { try { return sessionStorage.getItem(KEY); } catch { return this.kept ?? null; } },
  set(value) { try { sessionStorage.setItem(KEY, value); } catch { this.kept = value; } },
  forget() { this.kept = null; try { sessionStorage.removeItem(KEY); } catch { /* there is none */ } },
};

/** Whether an address carries a token, in its query or its hash; ids in ours are encoded, so that none looks like it. */
export const carriesToken = ({ search: sought, hash }) =>
  /[?#&;/](access_?|api_?|auth_?)?(token|key|bearer|authorization)=/i.test(sought + hash);

const headers = (more = {}) => {
  const held = token.get();
  return held ? { ...more, Authorization: `Bearer ${held}` } : more;
};

const reasonOf = async (answer) => {
  try {
    const problem = await answer.json();
    return problem.detail ?? problem.title ?? answer.statusText;
  } catch {
    return answer.statusText || `status ${answer.status}`;
  }
};

const open = async (path, options = {}) => {
  let answer;
  try {
    answer = await fetch(path.startsWith("/v1/") ? path : ROOT + path, { cache: "no-store", credentials: "omit", ...options, headers: headers(options.headers) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer");
  }
  noteServerTime(answer.headers.get("Date"));
  if (!answer.ok) throw new Refused(answer.status, await reasonOf(answer));
  return answer;
};

const query = (parameters) => {
  const kept = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "" && value !== null));
  return kept.size ? `?${kept}` : "";
};

/**
 * An id as one part of a path. Browsers take a part of dots alone for a way up, however it is encoded.
 */
const part = (id) => {
  if (/^\.{1,2}$/.test(id)) throw new Refused(400, `the id “${id}” cannot stand in an address; “turntide query” shows the session`);
  return encodeURIComponent(id);
};

const read = async (path, options) => (await open(path, options)).json();
const write = (path, body, method = "POST") =>
  read(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
const alertPath = (alert, deed) => `/alerts/${part(alert.alert_id)}/${deed}`;

export const me = () => read("/me");
export const stream = (signal) => open("/stream", { signal, headers: { Accept: "text/event-stream" } });
export const session = async ({ app_id, session_id: id }, { text = false, signal } = {}) =>
  read(`/sessions/${part(id)}${query({ app_id, text: text ? "true" : "" })}`, { signal });
export const turns = async ({ app_id, session_id: id }, first, last, signal) =>
  read(`/texts/${part(id)}${query({ app_id, first, last })}`, { signal });
export const search = (parameters, signal) => read(`/search${query(parameters)}`, { signal });
export const acknowledge = (alert) => write(alertPath(alert, "acknowledge"), { session_id: alert.session_id });
export const label = (alert, right, reason) =>
  write(alertPath(alert, "label"), { session_id: alert.session_id, label: right, ...(reason ? { reason } : {}) });
const named = (alerts) => alerts.map(({ alert_id, session_id }) => ({ alert_id, session_id }));
export const labelAll = (alerts, right, reason) =>
  write("/alerts/label", { alerts: named(alerts), label: right, ...(reason ? { reason } : {}) });
export const triage = (alerts, news) => write("/alerts/triage", { alerts: named(alerts), ...news });
export const searches = () => read("/searches");
export const saveSearch = (body) => write("/searches", body, "PUT");
export const similar = (alert) => read(alertPath(alert, "similar"));
const ofSession = ({ app_id, session_id: id }, end) => `/v1/sessions/${part(id)}/${end}${query({ app_id })}`;
export const correctTurn = (session, turn, content, reason) => write(ofSession(session, `turns/${turn}`), { content, reason }, "PUT");
export const adjustTopic = (session, topic, importance, tags) =>
  write(ofSession(session, `topics/${part(topic)}`), { importance, ...(tags.length ? { tags } : {}) }, "PUT");
export const giveFeedback = (session, turn, value) => write(ofSession(session, "feedback"), { turn, value });
