// Keyboard: letters are commands unless somebody writes, holds a modifier, or has switched them off.

import { el, isWriting } from "./dom.js";

const KEPT = "turntide.keys";
const EVERYWHERE = { "1 2 3 4": "sessions, alerts, search, health", "j k ↑ ↓": "move", "Enter": "open", "?": "this help" };
const VIEWS = { 1: "#/sessions", 2: "#/alerts", 3: "#/search", 4: "#/health" };

const stored = () => { try { return localStorage.getItem(KEPT); } catch { return null; } };
let on = stored() !== "off";

const keep = (value) => {
  on = value;
  try { localStorage.setItem(KEPT, value ? "on" : "off"); } catch { /* until this page is closed, then */ }
};

/** Listens; `view()` answers the view that is shown. */
export const listen = (view, help) => addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (isWriting(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const single = event.key.length === 1;
  if (single && !on) return;
  if (event.key === "?") help();
  else if (event.key in VIEWS) location.hash = VIEWS[event.key];
  else if (!view()?.key(event.key, event.target)) return;
  event.preventDefault();
});

/** The help as a dialog. */
export const helpDialog = (view) => {
  const box = el("input", { type: "checkbox", onchange: () => keep(box.checked) });
  box.checked = on;
  const dialog = el("dialog", { class: "ask", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keyboard"),
    el("dl", { class: "keys" }, ...Object.entries({ ...EVERYWHERE, ...view?.keys }).flatMap(([key, does]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, does)])),
    el("label", { class: "check" }, box, " Letters are commands"),
    el("p", { class: "buttons" }, el("button", { type: "button", class: "main", onclick: () => dialog.close() }, "Close")));
  return dialog;
};
