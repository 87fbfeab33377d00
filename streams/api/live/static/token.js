// Where a token is asked for. It is kept for this tab only and never becomes part of an address.

import { token } from "./client.js";
import { el } from "./dom.js";

const FORM = /^[A-Za-z0-9._~+/-]+=*$/;

/** Asks for a token; `given()` is called when there is one. */
export const askToken = (main, said, given) => {
  const input = el("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true, id: "token", "aria-describedby": "token-said" });
  const problem = el("p", { class: "bad", id: "token-said", role: "alert" }, said);
  main.replaceChildren(el("form", { class: "panel token", onsubmit: (event) => {
    event.preventDefault();
    const value = input.value.trim();
    if (!FORM.test(value)) { problem.textContent = "A token is letters, digits and -._~+/ without spaces."; return; }
    token.set(value);
    given();
  } },
  el("h1", { tabindex: "-1" }, "Sign in with a token"), problem,
  el("p", {}, "This page takes an operator's or admin's token (setting http.tokens). It is kept until this tab is closed."),
  el("label", { for: "token" }, "Token"), input,
  el("p", { class: "buttons" }, el("button", { type: "submit", class: "main" }, "Open"))));
  input.focus();
};
