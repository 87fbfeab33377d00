// A session's risk by turn: bands of modes behind it, segments below, alerts and their evidence marked.

import { svg } from "./dom.js";
import { count, ratio, several } from "./format.js";

const HEIGHT = 210, LEFT = 34, RIGHT = 10, TOP = 26, BOTTOM = 34;
const LEAST_BAND = 46;

/** Runs of turns with one mode, from the changes between them: `[{mode, first, last}]`. */
export const bandsOf = (modes, first, last) => {
  const bands = [];
  let at = first, mode = modes[0]?.from_mode ?? null;
  for (const change of modes) {
    if (mode !== null && change.turn > at) bands.push({ mode, first: at, last: change.turn });
    at = Math.max(first, change.turn);
    mode = change.to_mode;
  }
  if (mode !== null) bands.push({ mode, first: at, last });
  return bands;
};

/** At most two points for each pixel, the least and the most of it: peaks stay. */
export const thinned = (points, pixels) => {
  const each = Math.ceil(points.length / Math.max(pixels, 1));
  if (each <= 2) return points;
  const kept = [];
  for (let at = 0; at < points.length; at += each) {
    const part = points.slice(at, at + each);
    const low = part.reduce((a, b) => (b.risk < a.risk ? b : a)), high = part.reduce((a, b) => (b.risk > a.risk ? b : a));
    kept.push(...(low.turn < high.turn ? [low, high] : low === high ? [low] : [high, low]));
  }
  return kept;
};

const ticks = (first, last, width) => {
  const span = Math.max(last - first, 1), rough = span / Math.max(2, Math.floor(width / 90));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough));
  const found = [];
  for (let turn = Math.ceil(first / step) * step; turn <= last; turn += step) found.push(turn);
  return found;
};

const words = (detail, points) => {
  if (!points.length) return "No turn of this session has a risk yet.";
  const peak = points.reduce((a, b) => (b.risk > a.risk ? b : a)), last = points[points.length - 1];
  const marked = detail.turns.filter((turn) => turn.evidence.length).length;
  return `Risk over ${several(points.length, "turn")}: ${ratio(last.risk)} at turn ${last.turn}, at most ${ratio(peak.risk)} at turn ${peak.turn}; ` +
    `${several(detail.alerts.length, "alert")}, ${several(marked, "turn")} marked as evidence, ${several(detail.segments.length, "segment")} compacted.`;
};

/** The chart for a width in pixels; `picked(turn)` hears of clicks, `over(turn)` of the pointer. */
export const drawChart = (detail, width, { picked, over } = {}) => {
  const points = detail.turns.filter((turn) => typeof turn.risk === "number");
  const first = detail.turns[0]?.turn ?? 0, last = Math.max(detail.turns[detail.turns.length - 1]?.turn ?? 1, first + 1);
  const inner = Math.max(40, width - LEFT - RIGHT), low = HEIGHT - BOTTOM;
  const x = (turn) => LEFT + ((turn - first) / (last - first)) * inner;
  const y = (risk) => low - Math.max(0, Math.min(1, risk)) * (low - TOP);
  const node = svg("svg", { class: "chart", role: "img", "aria-label": words(detail, points), viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT });
  const text = (at, top, said, given = {}) => svg("text", { x: at.toFixed(1), y: top, ...given }, said);

  for (const band of bandsOf(detail.modes, first, last)) {
    const from = x(band.first), wide = Math.max(1, x(band.last) - from);
    node.append(svg("rect", { class: "band", "data-kind": band.mode, x: from, y: TOP, width: wide, height: low - TOP }, svg("title", {}, `${band.mode}, turns ${band.first}–${band.last}`)),
      svg("rect", { class: "band-strip", "data-kind": band.mode, x: from, y: TOP - 4, width: wide, height: 4 }));
    if (wide > LEAST_BAND) node.append(text(from + 3, TOP - 9, band.mode, { class: "band-name", "data-kind": band.mode }));
  }
  for (const risk of [0, 0.25, 0.5, 0.75, 1]) {
    node.append(svg("line", { class: "rule", x1: LEFT, x2: width - RIGHT, y1: y(risk), y2: y(risk) }), text(LEFT - 5, y(risk) + 3.5, risk.toFixed(2), { "text-anchor": "end" }));
  }
  for (const turn of ticks(first, last, inner)) node.append(text(x(turn), HEIGHT - 4, count(turn), { "text-anchor": "middle" }));
  for (const segment of detail.segments) {
    const from = x(segment.first_turn), wide = Math.max(2, x(segment.last_turn) - from - 1);
    node.append(svg("rect", { class: "segment", x: from, y: low + 6, width: wide, height: 6 },
      svg("title", {}, `turns ${segment.first_turn}–${segment.last_turn} compacted: ${count(segment.tokens_before)} to ${count(segment.tokens_after)} tokens`)));
  }
  for (const alert of detail.alerts) {
    node.append(svg("line", { class: "alert-line", "data-kind": alert.severity, x1: x(alert.turn), x2: x(alert.turn), y1: TOP, y2: low }),
      svg("path", { class: "alert-flag", "data-kind": alert.severity, d: `M${x(alert.turn) - 5} ${TOP + 9}h10l-5 -9z` }, svg("title", {}, `${alert.severity} alert at turn ${alert.turn}`)));
  }
  const line = thinned(points, inner);
  if (line.length) {
    const path = line.map((point) => `${x(point.turn).toFixed(1)} ${y(point.risk).toFixed(1)}`).join("L");
    node.append(svg("path", { class: "area", d: `M${x(line[0].turn).toFixed(1)} ${low}L${path}L${x(line[line.length - 1].turn).toFixed(1)} ${low}z` }), svg("path", { class: "risk-line", d: `M${path}` }));
  }
  for (const turn of points.filter((point) => point.evidence.length)) {
    node.append(svg("path", { class: "evidence", d: `M${x(turn.turn).toFixed(1)} ${(y(turn.risk) - 5).toFixed(1)}l5 5l-5 5l-5 -5z` }, svg("title", {}, `turn ${turn.turn}: evidence, risk ${ratio(turn.risk)}`)));
  }
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: low, visibility: "hidden" });
  node.append(cursor);
  const turnAt = (event) => {
    const box = node.getBoundingClientRect();
    return Math.round(first + Math.max(0, Math.min(1, (event.clientX - box.left - LEFT) / inner)) * (last - first));
  };
  node.addEventListener("pointermove", (event) => {
    const turn = turnAt(event);
    cursor.setAttribute("x1", x(turn));
    cursor.setAttribute("x2", x(turn));
    cursor.setAttribute("visibility", "visible");
    over?.(turn);
  });
  node.addEventListener("pointerleave", () => { cursor.setAttribute("visibility", "hidden"); over?.(null); });
  node.addEventListener("click", (event) => picked?.(turnAt(event)));
  return node;
};

/** What each turn added to an alert, as columns from zero. */
export const drawContributions = (contributions, evidence, width) => {
  const height = 64, foot = 13, values = contributions.map((each) => each.weight);
  const most = Math.max(0, ...values), least = Math.min(0, ...values), span = most - least || 1;
  const y = (value) => 3 + ((most - value) / span) * (height - foot - 6);
  const step = width / Math.max(contributions.length, 1), wide = Math.max(1, Math.min(18, step - 2));
  const strongest = contributions.reduce((a, b) => (Math.abs(b.weight) > Math.abs(a?.weight ?? 0) ? b : a), null);
  const node = svg("svg", { class: "chart", role: "img", viewBox: `0 0 ${width} ${height}`, width, height,
    "aria-label": strongest ? `What ${several(values.length, "turn")} added; most turn ${strongest.turn}: ${strongest.weight.toFixed(2)}` : "No turn added to it" });
  contributions.forEach(({ turn, weight }, i) => {
    const at = i * step + (step - wide) / 2, top = Math.min(y(weight), y(0));
    node.append(svg("rect", { class: evidence.includes(turn) ? "column evident" : "column", x: at.toFixed(1), y: top.toFixed(1), width: wide.toFixed(1), height: Math.max(1, Math.abs(y(weight) - y(0))).toFixed(1) },
      svg("title", {}, `turn ${turn}: ${weight.toFixed(2)}`)));
    if (step >= 22 || i === 0 || i === contributions.length - 1) node.append(svg("text", { x: (at + wide / 2).toFixed(1), y: height - 1, "text-anchor": "middle" }, String(turn)));
  });
  node.append(svg("line", { class: "rule", x1: 0, x2: width, y1: y(0), y2: y(0) }));
  return node;
};
