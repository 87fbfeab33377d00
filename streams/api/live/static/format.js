// Numbers and times as they are shown; and the addresses of views.

let skewMs = 0;

/** Notes the server's clock, so that ages are right on a machine whose clock is not. */
export const noteServerTime = (header) => {
  const told = Date.parse(header ?? "");
  if (Number.isFinite(told) && Math.abs(told - Date.now()) > 2000) skewMs = told - Date.now();
};

/** Milliseconds since 1970 by the server's clock. */
export const now = () => Date.now() + skewMs;

/** A ratio 0 to 1 with two digits; a dash where there is none. */
export const ratio = (value) => (typeof value === "number" ? value.toFixed(2) : "–");

/** A number with its sign. */
export const signed = (value, digits = 2) =>
  typeof value === "number" ? `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}` : "–";

const counts = new Intl.NumberFormat("en-GB");
/** A count with separators. */
export const count = (value) => (typeof value === "number" ? counts.format(value) : "–");

/** How many of what. */
export const several = (number, one, more = `${one}s`) => `${count(number)} ${number === 1 ? one : more}`;

/** How long ago, in one unit. */
export const ago = (time) => {
  const seconds = Math.max(0, Math.round((now() - Date.parse(time)) / 1000));
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
};

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const dated = new Intl.DateTimeFormat("en-GB", {
  day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
});
/** Time of day here. */
export const timeOfDay = (milliseconds) => clock.format(milliseconds);
/** Day and time here. */
export const moment = (time) => {
  const read = Date.parse(time);
  return Number.isFinite(read) ? dated.format(read) : "–";
};

/** An address of a view; parts are encoded, empty parameters left out. */
export const address = (parts, parameters = {}) => {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
};

/** What names a session: its id is unique within its app alone. */
export const sessionKey = ({ app_id: app, session_id: id }) => JSON.stringify([app, id]);

/** The address of a session, or of one that an alert or an answer is of. */
export const sessionAddress = ({ app_id: app, session_id: id }, parameters = {}) => address(["session", id], { app, ...parameters });

/** The view that an address names: `{parts, parameters}`. */
export const readAddress = (hash) => {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { parts, parameters: new URLSearchParams(query) };
};
