// The page: who asks, the stream, which view is shown.

import { Alerts, waiting } from "./alerts.js";
import { Board } from "./board.js";
import * as client from "./client.js";
import { Deeds } from "./deeds.js";
import { el, setText } from "./dom.js";
import { count, readAddress, several, timeOfDay } from "./format.js";
import { Health, ill } from "./health.js";
import { helpDialog, listen } from "./keys.js";
import { Search } from "./search.js";
import { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { Stream, pauseMs } from "./stream.js";
import { askToken } from "./token.js";

const VIEWS = { sessions: Sessions, session: Session, alerts: Alerts, search: Search, health: Health };
const OPERATORS = new Set(["operator", "admin"]);
const SAY_AGAIN_MS = 5000;

const byId = (id) => document.getElementById(id);
const main = byId("main"), nav = byId("views"), notice = byId("notice"), said = byId("said"), link = byId("link"), leave = byId("leave");

const context = {
  board: new Board(),
  me: null,
  kept: {},
  say: (text) => { said.textContent = text; },
  fail: (text) => {
    notice.hidden = false;
    notice.replaceChildren(text, " ", el("button", { type: "button", class: "quiet", onclick: () => { notice.hidden = true; } }, "Dismiss"));
  },
  refused: (error, text) => { if (error.status === 401) lockedOut("The token is not valid any more."); else context.fail(text); },
  changed: () => view?.update({ alerts: true }),
  ask: (dialog, first) => {
    const before = document.activeElement;
    document.body.append(dialog);
    dialog.addEventListener("close", () => { dialog.remove(); before?.focus?.(); });
    dialog.showModal();
    first?.focus();
  },
};
context.deeds = new Deeds(context);

let view = null, stream = null, spoken = -Infinity;

const show = ({ first = false } = {}) => {
  if (refuseToken() || !context.me) return;
  const address = readAddress(location.hash);
  const name = address.parts[0] in VIEWS ? address.parts[0] : "sessions";
  view?.stop();
  notice.hidden = true;
  main.replaceChildren();
  main.dataset.view = name;
  view = new VIEWS[name](main, context, address);
  nameTab();
  for (const each of nav.querySelectorAll("a")) {
    const here = each.dataset.view === (name === "session" ? "sessions" : name);
    if (here) each.setAttribute("aria-current", "page"); else each.removeAttribute("aria-current");
  }
  if (!first) main.querySelector("h1")?.focus({ preventScroll: true });
};

/** A token in an address stays in histories and logs: it is taken out and not used. */
const refuseToken = () => {
  if (!client.carriesToken(location)) return false;
  history.replaceState(null, "", location.pathname);
  view?.stop();
  view = null;
  stream?.stop();
  nav.hidden = true;
  client.token.forget();
  askToken(main, "The address held a token. It was not used: addresses stay in histories and logs. Withdraw that token, and type another one here.", begin);
  return true;
};

/** With the number of alerts that fire, which a tab in the background shows, too. */
const nameTab = () => {
  const firing = waiting(context.board.alerts);
  const title = `${firing ? `(${count(firing)}) ` : ""}${view?.title ?? "Live"} – Turntide`;
  if (document.title !== title) document.title = title;
};

const standing = ({ state, since, pauseMs: pause }) => {
  const words = {
    connecting: "Connecting",
    live: "Live",
    reconnecting: `Reconnecting${pause ? ` in ${Math.ceil(pause / 1000)} s` : ""}${since ? `, stale since ${timeOfDay(since)}` : ""}`,
    locked: "Not connected",
  };
  if (state !== link.dataset.state && (state === "reconnecting" || link.dataset.state === "reconnecting")) context.say(state === "live" ? "Connected again" : words[state]);
  link.dataset.state = state;
  setText(byId("link-text"), words[state]);
};

const lockedOut = (reason) => {
  stream?.stop();
  view?.stop();
  view = null;
  context.me = null;
  context.board = new Board();
  context.kept = {};
  nav.hidden = true;
  leave.hidden = true;
  notice.hidden = true;
  standing({ state: "locked" });
  nameTab();
  client.token.forget();
  askToken(main, reason, begin);
};

/** A number beside the name of a view, where there is something to look at. */
const badge = (id, number, what) => {
  const node = byId(id);
  node.hidden = number === 0;
  setText(node, count(number));
  node.setAttribute("aria-label", `${number} ${what}`);
};

const listenToBoard = () => context.board.subscribe((changed) => {
  if (changed.alerts) {
    context.deeds.settle(context.board.alerts);
    badge("waiting", waiting(context.board.alerts), "firing");
    nameTab();
    const { fresh } = changed;
    if (fresh.length && performance.now() - spoken > SAY_AGAIN_MS) {
      spoken = performance.now();
      context.say(fresh.length === 1 ? `New ${fresh[0].severity} alert: ${fresh[0].sentence}` : `${several(fresh.length, "new alert")}`);
    }
  }
  if (changed.roles) badge("ill", ill(context.board.roles), "not ready");
  view?.update(changed);
});

const begin = async () => {
  stream?.stop();
  for (let failures = 0; ; failures++) {
    try {
      context.me = await client.me();
      break;
    } catch (error) {
      if (error.status === 401) return lockedOut(client.token.get() ? "This token is not known." : "");
      if (error.status === 403) return lockedOut(`This token may not: ${error.message}.`);
      const pause = pauseMs(failures);
      standing({ state: "reconnecting", pauseMs: pause });
      main.replaceChildren(el("p", { class: "pad faint" }, `Not loaded: ${error.message}. Trying again.`));
      await new Promise((resolve) => { setTimeout(resolve, pause); });
    }
  }
  if (!OPERATORS.has(context.me.role)) return lockedOut(`This page takes an operator's token; this one is a ${context.me.role}'s.`);
  nav.hidden = false;
  leave.hidden = !client.token.get();
  context.board = new Board();
  listenToBoard();
  show({ first: true });
  const { board } = context;
  stream = new Stream({
    connect: client.stream,
    began: () => board.begin(),
    take: (name, data) => board.take(name, data),
    told: standing,
    refused: (error) => lockedOut(error.status === 401 ? "The token is not valid any more." : `This token may not: ${error.message}.`),
  });
};

const grounds = ["auto", "light", "dark"], ground = byId("ground");
const nameGround = () => {
  const chosen = document.documentElement.dataset.ground ?? "auto";
  ground.replaceChildren(el("span", { "aria-hidden": "true" }, "◐ "), chosen);
  ground.setAttribute("aria-label", `Colours: ${chosen}`);
  ground.title = chosen === "auto" ? "Colours: as the system has them" : `Colours: ${chosen}`;
};
ground.addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const next = grounds[(grounds.indexOf(dataset.ground ?? "auto") + 1) % grounds.length];
  if (next === "auto") delete dataset.ground; else dataset.ground = next;
  try { localStorage.setItem("turntide.ground", next); } catch { /* until this page is closed, then */ }
  nameGround();
});
nameGround();

const help = () => context.ask(helpDialog(view));
byId("help").addEventListener("click", help);
leave.addEventListener("click", () => lockedOut("The token was forgotten."));
byId("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
listen(() => view, help);
addEventListener("hashchange", () => show());
if (!refuseToken()) begin();
