// Filters of the queue of alerts, and those that are saved under a title for everybody of an app.

import * as client from "./client.js";
import { el, labelled, select } from "./dom.js";

const HARMS = ["privacy", "fraud", "weapons", "self-harm", "cyber", "violence", "hate", "other"];
/** By field of an alert: what it is called, what no choice is called, and what there is; apps come as they are seen. */
const FILTERS = {
  app_id: { title: "App", any: "all apps", values: [] },
  severity: { title: "Severity", any: "any", values: ["critical", "warning"] },
  category: { title: "Harm", any: "any", values: HARMS },
};
const options = (name, values) => [["", FILTERS[name].any], ...values.map((value) => [value, value])];

/** The filters' controls; `chosen` is what is wanted, `show` the kind of alerts, `changed()` hears of each change. */
export class AlertFilters {
  #saved = [];

  constructor(context, parameters, show, changed) {
    this.context = context;
    this.show = show;
    this.changed = changed;
    this.selects = {};
    for (const name of Object.keys(FILTERS)) {
      const given = parameters.get(name) ?? "", values = new Set(FILTERS[name].values);
      if (given) values.add(given);
      this.selects[name] = select(options(name, [...values]), given, { onchange: () => this.#choose() });
    }
    this.saved = select([["", "none"]], "", { onchange: () => this.#apply() });
    this.button = el("button", { type: "button", onclick: () => (this.saved.value ? this.#forget() : this.#ask()) }, "Save …");
    this.nodes = [...Object.entries(this.selects).map(([name, control]) => labelled(FILTERS[name].title, control)), labelled("Saved", this.saved), this.button];
    this.#load();
  }

  get chosen() { return Object.fromEntries(Object.entries(this.selects).map(([name, { value }]) => [name, value])); }

  has(alert) { return Object.entries(this.chosen).every(([name, value]) => !value || alert[name] === value); }

  /** Offers the apps that are known. */
  offer(apps) {
    const control = this.selects.app_id, known = new Set([...control.options].map(({ value }) => value));
    for (const app of [...apps].sort()) if (!known.has(app)) control.append(el("option", { value: app }, app));
  }

  #choose() {
    this.saved.value = "";
    this.#name();
    this.changed();
  }

  #name() { this.button.textContent = this.saved.value ? "Let go" : "Save …"; }

  #apply() {
    const { app_id: app, show, severity, category } = this.#saved[this.saved.value] ?? { app_id: "", show: "open" };
    this.offer([app]);
    for (const [name, value] of Object.entries({ app_id: app, severity, category })) this.selects[name].value = value ?? "";
    this.show.value = show;
    this.#name();
    this.changed();
  }

  async #load() {
    try {
      this.#take(await client.searches());
    } catch (error) { this.context.refused(error, `Saved searches were not read: ${error.message}.`); }
  }

  #take({ searches }) {
    this.#saved = searches;
    this.saved.replaceChildren(...[["", "none"], ...searches.map(({ title, app_id: app }, at) => [at, `${title} (${app})`])].map(([value, text]) => el("option", { value }, text)));
    this.#name();
  }

  async #write(body, said) {
    try {
      const answer = await client.saveSearch(body);
      this.context.say(said);
      if (answer.searches) await this.#load();
      else this.context.fail("The search is in the log, and shows when the role memory has read it.");
    } catch (error) { this.context.refused(error, `The search was not kept: ${error.message}.`); }
  }

  #forget() {
    const { app_id, ...search } = this.#saved[this.saved.value];
    return this.#write({ app_id, search, kept: false }, "Let go");
  }

  #ask() {
    const { app_id: app, severity, category } = this.chosen;
    const title = el("input", { maxlength: "64", required: true, id: "ask-field" });
    const dialog = el("dialog", { class: "ask", "aria-labelledby": "ask-title" },
      el("form", { method: "dialog", onsubmit: (event) => {
        event.preventDefault();
        dialog.close();
        this.#write({ app_id: app, search: { title: title.value.trim(), show: this.show.value, severity: severity || null, category: category || null } }, "Saved");
      } },
      el("h2", { id: "ask-title" }, "Save this search?"),
      el("p", { class: "faint" }, `Everybody who may see alerts of ${app} finds it under “Saved”. What stands in Search is not kept: it may name somebody.`),
      el("label", { for: "ask-field" }, "Title"), " ", title,
      el("p", { class: "buttons" },
        el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), el("button", { type: "submit", class: "main" }, "Save"))));
    if (app) this.context.ask(dialog, title);
    else this.context.fail("Choose an app first: a search is saved for those of an app.");
  }
}
