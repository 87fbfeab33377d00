// Whether the roles do their work, and how far behind they are.

import { el } from "./dom.js";
import { count } from "./format.js";
import { mark } from "./marks.js";

const WORDS = { ready: "ready", not_ready: "not ready", away: "away", unknown: "unknown" };

/** How many roles do not do their work; those not asked yet do not count. */
export const ill = (roles) => roles.filter(({ state }) => state === "not_ready" || state === "away").length;

/** The view. */
export class Health {
  title = "Health";
  keys = {};

  constructor(main, context) {
    this.context = context;
    this.body = el("tbody");
    this.none = el("p", { class: "pad faint" }, "The roles have not been asked yet.");
    this.table = el("div", { class: "wide pad", tabindex: "0", role: "region", "aria-label": "Roles" }, el("table", { class: "roles" },
      el("thead", {}, el("tr", {}, ...["Role", "State", "Behind", "Reason"].map((head) => el("th", { scope: "col", class: head === "Behind" ? "amount" : null }, head)))), this.body));
    main.append(el("div", { class: "tools" }, el("h1", { tabindex: "-1" }, "Health")), this.none, this.table,
      el("p", { class: "pad faint" }, "“Behind” counts records that wait in Kafka. “turntide doctor” says what to do about a role that is not ready."));
    this.#show();
  }

  update(changed) { if (changed.roles) this.#show(); }

  key() { return false; }

  stop() { /* nothing runs */ }

  #show() {
    const { roles } = this.context.board, shown = JSON.stringify(roles);
    if (this.shown === shown) return;
    this.shown = shown;
    this.none.hidden = roles.length > 0;
    this.table.hidden = roles.length === 0;
    this.body.replaceChildren(...roles.map(({ role, state, detail, lag_records: lag }) => el("tr", {},
      el("th", { scope: "row" }, role), el("td", {}, mark(state, WORDS[state] ?? state)),
      el("td", { class: "amount" }, count(lag)), el("td", { class: "words" }, detail === state ? "" : detail))));
  }
}
