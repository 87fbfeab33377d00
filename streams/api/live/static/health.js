// Whether the roles do their work, and how far behind they are.

import { el } from "./dom.js";
import { count } from "./format.js";
import { mark } from "./marks.js";

const WORDS = { ready: "ready", not_ready: "not ready", away: "away", unknown: "unknown" };

/** The view. */
export class Health {
  title = "Health";
  keys = {};

  constructor(main, context) {
    this.context = context;
    this.body = el("tbody");
    this.none = el("p", { class: "pad faint" }, "The roles have not been asked yet.");
    this.table = el("div", { class: "wide pad", tabindex: "0", role: "region", "aria-label": "Roles" }, el("table", { class: "roles" },
      el("thead", {}, el("tr", {}, ...["Role", "State", "Behind", "Reason"].map((head) => el("th", { scope: "col" }, head)))), this.body));
    main.append(el("div", { class: "tools" }, el("h1", { tabindex: "-1" }, "Health")), this.none, this.table,
      el("p", { class: "pad faint" }, "“turntide doctor” says what to do; “behind” counts records that wait in Kafka."));
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
      el("td", { class: "number" }, typeof lag === "number" ? count(lag) : "–"), el("td", {}, detail ?? ""))));
  }
}
