// Risk, mode, severity and state as marks: always a shape or a word beside the colour.

import { el, setAttribute, setText, svg } from "./dom.js";
import { ratio, signed } from "./format.js";

export const MODES = ["calm", "watch", "elevated", "critical"];
const SHAPES = { calm: "○", watch: "◔", elevated: "◑", critical: "●", warning: "▲", ready: "✓", not_ready: "!", away: "✕", unknown: "?" };
const FLAT = 0.0005;
const WIDTH = 80, HEIGHT = 24;

/** A word with its shape; `kind` is a mode, a severity or a state. */
export class Mark {
  constructor(given = "") {
    this.shape = el("i", { "aria-hidden": "true" });
    this.word = el("span", {});
    this.node = el("span", { class: `mark ${given}` }, this.shape, this.word);
  }

  show(kind, word = kind) {
    setAttribute(this.node, "data-kind", kind);
    setText(this.shape, SHAPES[kind] ?? "·");
    setText(this.word, word);
    return this;
  }
}

export const mark = (kind, word = kind) => new Mark().show(kind, word).node;

/** A risk from 0 to 1 as a bar and a number. */
export class Meter {
  constructor() {
    this.bar = el("i");
    this.number = el("span", { class: "number" });
    this.node = el("span", { class: "meter" }, el("span", { class: "track", "aria-hidden": "true" }, this.bar), this.number);
  }

  show(risk, mode) {
    const width = `${Math.round(Math.max(0, Math.min(1, risk ?? 0)) * 100)}%`;
    if (this.width !== width) this.bar.style.width = this.width = width;
    setAttribute(this.node, "data-kind", mode);
    setText(this.number, ratio(risk));
  }
}

/** The way of a slope in words and as an arrow. */
export const slopeText = (slope) => {
  if (typeof slope !== "number") return "–";
  const arrow = slope > FLAT ? "↗" : slope < -FLAT ? "↘" : "→";
  return `${arrow} ${signed(slope, 3)}`;
};

/** The last risks as a line, 0 to 1. */
export class Spark {
  #drawn = null;

  constructor() {
    this.line = svg("path", { class: "stroke" });
    this.node = svg("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, this.line);
  }

  show(values, mode) {
    if (this.#drawn !== values) this.line.setAttribute("d", sparkPath(values));
    this.#drawn = values;
    setAttribute(this.node, "data-kind", mode);
  }
}

/** The path of a sparkline. */
export const sparkPath = (values = []) => {
  if (!values.length) return "";
  const step = WIDTH / Math.max(values.length - 1, 1), low = HEIGHT - 1;
  const y = (value) => (low - Math.max(0, Math.min(1, value)) * (HEIGHT - 2)).toFixed(1);
  if (values.length === 1) return `M0 ${y(values[0])}H${WIDTH}`;
  return `M${values.map((value, i) => `${(i * step).toFixed(1)} ${y(value)}`).join("L")}`;
};
