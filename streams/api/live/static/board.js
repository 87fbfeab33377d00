// What is known: the latest of each session and alert, and the roles. Views hear of changes once a frame, or once a
// second in a tab that nobody looks at, where no frame comes.

import { sessionKey } from "./format.js";

const MOST_ALERTS = 5_000;
const UNSEEN_MS = 1_000;

export class Board {
  sessions = new Map(); // by `sessionKey`
  alerts = new Map();
  roles = [];
  reading = undefined;
  complete = false;
  #seen = null;
  #hearers = new Set();
  #changed = null;
  #fresh = [];

  /** A new stream begins: what its snapshot does not name will be gone. */
  begin() { this.#seen = { sessions: new Set(), alerts: new Set() }; }

  /** Takes an event of the stream; those of other names are passed over. */
  take(name, data) {
    if (name === "snapshot") this.#snapshot(data);
    else if (name === "changes") this.#changes(data);
    if (data.reading) this.reading = data.reading;
    if (data.roles?.length) this.roles = data.roles;
    if (data.reading || data.roles?.length) this.#note("roles");
  }

  /** Calls `hear({sessions, alerts, roles, fresh})` with what changed; returns how to end it. */
  subscribe(hear) {
    this.#hearers.add(hear);
    return () => this.#hearers.delete(hear);
  }

  #snapshot(piece) {
    if (this.#seen === null) this.begin(); // the server begins anew in the middle of a stream
    this.#put(piece.sessions ?? [], piece.alerts ?? []);
    if (piece.more) return;
    const seen = this.#seen;
    this.#seen = null;
    this.complete = true;
    this.#note("sessions");
    this.#note("alerts");
    for (const key of this.sessions.keys()) if (!seen.sessions.has(key)) this.sessions.delete(key);
    for (const id of this.alerts.keys()) if (!seen.alerts.has(id)) this.alerts.delete(id);
  }

  #changes({ sessions = [], gone_sessions: gone = [], alerts = [] }) {
    const known = this.complete && this.#seen === null;
    if (known) this.#fresh.push(...alerts.filter((alert) => alert.status === "firing" && !this.alerts.has(alert.alert_id)));
    for (const key of gone.map(sessionKey)) {
      this.sessions.delete(key);
      for (const alert of this.alerts.values()) if (sessionKey(alert) === key) this.#forget(alert);
    }
    this.#put(sessions, alerts);
    if (gone.length) this.#note("sessions");
  }

  #put(sessions, alerts) {
    for (const row of sessions) {
      this.sessions.set(sessionKey(row), row);
      this.#seen?.sessions.add(sessionKey(row));
    }
    for (const alert of alerts) {
      this.alerts.set(alert.alert_id, alert);
      this.#seen?.alerts.add(alert.alert_id);
    }
    if (sessions.length) this.#note("sessions");
    if (alerts.length) { this.#note("alerts"); this.#bound(); }
  }

  #forget(alert) {
    this.alerts.delete(alert.alert_id);
    this.#note("alerts");
  }

  /** A page that stays open for weeks must not grow: what was resolved first goes first. */
  #bound() {
    if (this.alerts.size <= MOST_ALERTS) return;
    for (const alert of this.alerts.values()) {
      if (alert.status === "resolved") this.alerts.delete(alert.alert_id);
      if (this.alerts.size <= MOST_ALERTS * 0.9) return;
    }
  }

  #note(what) {
    if (this.#changed) { this.#changed[what] = true; return; }
    this.#changed = { [what]: true };
    const frame = requestAnimationFrame(() => { clearTimeout(unseen); this.#tell(); });
    const unseen = setTimeout(() => { cancelAnimationFrame(frame); this.#tell(); }, UNSEEN_MS);
  }

  #tell() {
    const changed = { ...this.#changed, fresh: this.#fresh };
    this.#changed = null;
    this.#fresh = [];
    for (const hear of this.#hearers) hear(changed);
  }
}
