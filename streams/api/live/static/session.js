// One session: its risk over time, its turns, what was remembered of it, its alerts.

import * as client from "./client.js";
import { alertCard } from "./alert_card.js";
import { rateTopic } from "./changes.js";
import { drawChart } from "./chart.js";
import { deedButtons, replaceCards } from "./deeds.js";
import { el, pairs, setText } from "./dom.js";
import { ago, count, moment, ratio, sessionKey, several } from "./format.js";
import { Mark, Meter, mark, slopeText } from "./marks.js";
import { Turns } from "./turns.js";

const READ_EVERY_MS = 2000;
const MOST_TRIES = 5;
const LEGEND = [["▲", "alert"], ["◆", "evidence"], ["▬", "compacted"]];

/** The view. */
export class Session {
  keys = { x: "show or hide text", a: "acknowledge its first firing alert", Escape: "back to the sessions" };
  #abort = new AbortController();
  #detail = null;
  #text = false;
  #reading = false;
  #stale = false;
  #lastRead = 0;
  #tries = 0;

  constructor(main, context, { parts, parameters }) {
    this.context = context;
    this.wanted = parameters.get("turn");
    this.name = { app_id: parameters.get("app") ?? "", session_id: parts.slice(1).join("/") };
    this.title = this.name.session_id;
    this.turns = new Turns(context, this.name, (first, last) => client.turns(this.name, first, last, this.#abort.signal));
    this.head = el("div", { class: "session-head" });
    this.chart = el("div", { class: "chart-place" });
    this.legend = el("p", { class: "faint legend" }, "\u00a0");
    this.textButton = el("button", { type: "button", "aria-pressed": "false", "aria-keyshortcuts": "x", onclick: () => this.#unmask() }, "Show text");
    this.textNote = el("span", { class: "faint" });
    this.stored = el("span", { class: "faint" });
    this.memories = el("div", { class: "memories" });
    this.alerts = el("div", { class: "alert-cards" });
    this.state = el("p", { class: "pad faint" }, "Loading …");
    this.risk = new Meter();
    this.mode = new Mark("large");
    this.facts = el("div");
    this.body = el("div", { class: "session", hidden: true },
      this.head,
      el("section", { class: "panel risk-panel" }, el("h2", {}, "Risk by turn"), this.chart, this.legend),
      el("div", { class: "beside" },
        el("section", { class: "panel alerts-panel" }, el("h2", {}, "Alerts"), this.alerts),
        this.memories),
      el("section", { class: "panel turns-panel" }, el("div", { class: "panel-head" }, el("h2", {}, "Turns ", this.stored), this.textNote, this.textButton), this.turns.node));
    this.head.append(el("p", { class: "figures" }, this.mode.node, this.risk.node), this.facts);
    main.append(
      el("div", { class: "tools" }, el("a", { class: "back", href: context.kept.sessionsAddress ?? "#/sessions" }, "← Sessions"), el("h1", { tabindex: "-1", class: "id" }, this.title || "(no id)")),
      this.state, this.body);
    this.sizes = new ResizeObserver(() => this.#draw());
    this.sizes.observe(this.chart);
    this.timer = setInterval(() => this.#tick(), 1000);
    this.#mayRead();
    this.#read();
  }

  update(changed) {
    if (changed.alerts && this.#detail) this.#alertsChanged();
    if (!changed.sessions) return;
    const row = this.context.board.sessions.get(sessionKey(this.name));
    if (!row || row === this.row) return;
    this.#top(row);
    this.#tries = 0;
    if (this.#detail) this.#stale = true;
    this.#tick();
  }

  /** Grounds of an alert come with the session, not with the stream. */
  #alertsChanged() {
    const read = new Map(this.#detail.alerts.map((alert) => [alert.alert_id, alert]));
    for (const alert of this.context.board.alerts.values()) {
      if (sessionKey(alert) === sessionKey(this.name) && read.get(alert.alert_id)?.updated_at !== alert.updated_at) this.#stale = true;
    }
    this.#cards();
  }

  /** Turns are indexed a moment after the profile tells of them: look again, but not for ever. */
  #behind() {
    const { turns } = this.#detail;
    return (turns.length ? turns[turns.length - 1].turn : -1) < (this.row?.last_turn ?? 0) && this.#tries++ < MOST_TRIES;
  }

  key(name) {
    const first = this.#alertsNow().find((alert) => alert.status === "firing");
    if (name === "x") this.#unmask();
    else if (name === "Escape") location.hash = this.context.kept.sessionsAddress ?? "#/sessions";
    else if (name === "a" && first) this.context.deeds.acknowledge(first);
    else if (name === "a") this.context.fail("No alert of this session is firing.");
    else return this.turns.list.key(name);
    return true;
  }

  stop() {
    this.#abort.abort();
    clearInterval(this.timer);
    this.sizes.disconnect();
    this.turns.stop();
  }

  #tick() {
    if (this.row) this.#top(this.row);
    if (this.#stale && performance.now() - this.#lastRead > READ_EVERY_MS) this.#read();
  }

  #mayRead() {
    const may = this.context.me.text;
    this.textButton.hidden = !may;
    setText(this.textNote, may ? "Masked. Showing text is recorded in the audit." : "Masked: this token may not read text.");
  }

  #unmask() {
    if (!this.context.me.text) { this.context.fail("This token may not read text."); return; }
    this.#text = !this.#text;
    this.textButton.textContent = this.#text ? "Hide text" : "Show text";
    this.textButton.setAttribute("aria-pressed", String(this.#text));
    setText(this.textNote, this.#text ? "Shown. This is recorded in the audit." : "Masked. Showing text is recorded in the audit.");
    this.context.say(this.#text ? "Text is shown" : "Text is masked");
    this.turns.unmask(this.#text);
    if (!this.#text && this.#detail) {
      this.#detail = { ...this.#detail, ...masked(this.#detail) };
      this.#remembered(this.#detail);
      this.#cards();
    }
    this.#read();
  }

  async #read() {
    if (this.#reading) { this.#stale = true; return; }
    this.#reading = true;
    this.#stale = false;
    const text = this.#text;
    try {
      const read = await client.session(this.name, { text, signal: this.#abort.signal });
      const detail = text === this.#text ? read : { ...read, ...masked(read) };
      this.state.hidden = true;
      this.body.hidden = false;
      this.#detail = detail;
      this.name.app_id = detail.session.app_id; // an address of an earlier release names none
      this.#top(this.context.board.sessions.get(sessionKey(this.name)) ?? detail.session);
      this.#draw();
      this.turns.set(detail.turns);
      const held = detail.turns.length, of = this.row.turns;
      setText(this.stored, held < of ? `${count(held)} of ${count(of)}` : "");
      if (this.wanted !== null && detail.turns.length) this.turns.pick(Number(this.wanted));
      this.wanted = null;
      this.#remembered(detail);
      this.#cards();
      if (this.#behind()) this.#stale = true;
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === 404) this.#gone();
      else this.#unread(error);
    } finally {
      this.#reading = false;
      this.#lastRead = performance.now();
      if (text !== this.#text) this.#stale = true;
    }
  }

  #unread(error) {
    this.#stale = client.mayPass(error);
    if (this.#detail || error.status === 401) this.context.refused(error, `The session was not read: ${error.message}.`);
    else setText(this.state, `Not read: ${error.message}.${this.#stale ? " Trying again." : ""}`);
  }

  #gone() {
    this.#detail = null;
    this.body.hidden = true;
    this.state.hidden = false;
    setText(this.state, "No session of this id is known here: it was erased, is older than what is kept, or belongs to another app.");
  }

  #top(row) {
    this.row = row;
    this.mode.show(row.mode);
    this.risk.show(row.risk, row.mode);
    const shown = [row.app_id, row.user_id, ratio(row.peak_risk), slopeText(row.slope), count(row.turns), moment(row.started_at), `${ago(row.updated_at)} ago`, row.open ? "open" : "closed"];
    if (this.topShown === shown.join("\n")) return;
    this.topShown = shown.join("\n");
    const [app, user, peak, slope, turns, started, updated, state] = shown;
    this.facts.replaceChildren(pairs([["App", app], ["User", user], ["Riskiest turn alone", peak], ["Slope per turn", slope], ["Turns", turns], ["Started", started], ["Updated", updated], ["State", state]]));
  }

  #draw() {
    const width = this.chart.clientWidth;
    if (!this.#detail || !width || (this.drawn?.detail === this.#detail && this.drawn.width === width)) return;
    this.drawn = { detail: this.#detail, width };
    const byTurn = new Map(this.#detail.turns.map((turn) => [turn.turn, turn]));
    const over = (turn) => {
      const found = byTurn.get(turn);
      if (found) setText(this.legend, `Turn ${turn}, ${found.role}: risk ${ratio(found.risk)}${found.evidence.length ? ", evidence" : ""}`);
      else this.legend.replaceChildren(...LEGEND.map(([shape, what]) => el("span", {}, el("i", { class: what, "aria-hidden": "true" }, shape), ` ${what}`)));
    };
    over(null);
    this.chart.replaceChildren(drawChart(this.#detail, width, { picked: (turn) => this.turns.pick(turn), over }));
  }

  #alertsNow() {
    return (this.#detail?.alerts ?? []).map((alert) => ({ ...alert, ...this.context.board.alerts.get(alert.alert_id) }));
  }

  #cards() {
    const { deeds } = this.context, alerts = this.#alertsNow();
    const stamp = JSON.stringify(alerts.map((alert) => [alert, deeds.word(alert)]));
    if (this.cardsShown === stamp) return;
    this.cardsShown = stamp;
    replaceCards(this.alerts, alerts.length ? alerts.map((alert) => this.#card(alert, deeds)) : [el("p", { class: "faint" }, "None.")]);
  }

  #card(alert, deeds) {
    return alertCard(alert, { pending: deeds.word(alert), linked: false, pick: (turn) => this.turns.pick(turn),
      actions: deedButtons(deeds, alert, { latest: () => this.context.board.alerts.get(alert.alert_id) ?? alert }) });
  }

  /** What came from this session and is remembered: of each its text, what is known of it, and what can be done. */
  #remembered({ topics = [], facts = [], episodes = [], segments = [] } = {}) {
    const hidden = (value) => (value === null || value === undefined ? el("span", { class: "masked-word" }, "masked") : value);
    const item = (text, known, deed = null) => el("li", {}, el("p", { class: "text" }, ...text), el("p", { class: "faint" }, known), deed);
    const part = (title, items) => el("section", { class: "panel", "aria-label": title }, el("h2", {}, title), items.length
      ? el("ul", { class: "remembered", tabindex: "0", "aria-label": title }, ...items)
      : el("p", { class: "faint" }, "None."));
    this.memories.replaceChildren(
      part("Facts", facts.map((f) => item([`${f.key.replaceAll("_", " ")}: `, hidden(f.value)], `${f.category}, ${f.active ? "active" : "superseded"}`))),
      part("Topics", topics.map((t) => item([hidden(t.title)], `importance ${ratio(t.importance)}, ${several(t.message_count, "message")}, ${t.state}`,
        t.state === "gone" ? null : el("button", { type: "button", onclick: () => rateTopic(this.context, this.name, t) }, "Rate or tag")))),
      part("Episodes", episodes.map((e) => item([hidden(e.summary)], turnsOf(e)))),
      part("Compacted segments", segments.map((s) => item([hidden(s.summary)], `${turnsOf(s)}, ${count(s.tokens_before)} tokens became ${count(s.tokens_after)}`))));
  }
}

const turnsOf = ({ first_turn: first, last_turn: last }) => (first === last ? `turn ${first}` : `turns ${first}–${last}`);

const masked = (detail) => ({
  alerts: (detail?.alerts ?? []).map((alert) => ({ ...alert, quote: null, notes: alert.notes?.map((each) => ({ ...each, note: null })) })),
  topics: (detail?.topics ?? []).map((topic) => ({ ...topic, title: null })),
  facts: (detail?.facts ?? []).map((fact) => ({ ...fact, value: null })),
  episodes: (detail?.episodes ?? []).map((episode) => ({ ...episode, summary: null })),
  segments: (detail?.segments ?? []).map((segment) => ({ ...segment, summary: null })),
});
