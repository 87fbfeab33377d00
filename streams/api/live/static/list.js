// A list of any length as a grid: only the rows in sight are in the document, and they are used again.

import { el } from "./dom.js";

const SPARE_ROWS = 4;
let lists = 0;

/**
 * A virtual list inside `root`, which becomes the scrolling grid.
 *
 * `make()` answers `{node, render(item)}` of one row; `key(item)` its id. All rows are `rowHeight()` pixels high.
 * `latest(item)` answers what has become of it since; `selected(item)` hears of the selection, `open(item)` of Enter and clicks; `inSight(first, last)` of what is shown.
 */
export class VirtualList {
  items = [];
  selectedKey = null;
  #pool = [];
  #frame = 0;
  #rowHeight = 0;
  #index = new Map();

  constructor(root, header, parts) {
    this.root = root;
    this.parts = parts;
    this.header = header;
    this.prefix = `list${lists++}`;
    this.body = document.createElement("div");
    this.body.setAttribute("role", "rowgroup");
    this.body.className = "rows";
    root.setAttribute("role", "grid");
    root.tabIndex = 0;
    root.append(...(header ? [header] : []), this.body);
    root.addEventListener("scroll", () => this.schedule(), { passive: true });
    root.addEventListener("keydown", (event) => {
      if (event.target === root && !event.ctrlKey && !event.metaKey && !event.altKey && this.key(event.key)) event.preventDefault();
    });
    // Who comes by keyboard sees where they are: the mark of the focus is on the selected row.
    root.addEventListener("focus", () => { if (root.matches(":focus-visible")) this.move(0); });
    this.body.addEventListener("click", (event) => this.#clicked(event));
    this.sizes = new ResizeObserver(() => this.schedule());
    this.sizes.observe(root);
  }

  /** Shows other items; the selection stays with its key, and where it is on the screen if it has the focus. */
  set(items) {
    const before = this.selectedIndex;
    const held = before >= 0 && document.activeElement === this.root && this.#inView(before);
    this.items = items;
    this.#index = null;
    const after = this.selectedIndex;
    this.#measure();
    if (held && after >= 0 && after !== before) this.root.scrollTop += (after - before) * this.#rowHeight;
    this.schedule();
  }

  get selectedIndex() {
    if (this.selectedKey === null) return -1;
    this.#index ??= new Map(this.items.map((item, i) => [this.parts.key(item), i]));
    return this.#index.get(this.selectedKey) ?? -1;
  }

  get selectedItem() { return this.items[this.selectedIndex] ?? null; }

  /** Selects by place, and brings the row into sight. */
  select(index) {
    if (!this.items.length) return;
    const to = Math.max(0, Math.min(this.items.length - 1, index));
    this.selectedKey = this.parts.key(this.items[to]);
    this.#measure();
    const top = to * this.#rowHeight, room = this.root.clientHeight - this.#headHeight;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (top + this.#rowHeight > this.root.scrollTop + room) this.root.scrollTop = top + this.#rowHeight - room;
    this.parts.selected?.(this.items[to]);
    this.render();
  }

  /** Moves the selection; without one it begins at the first row in sight. */
  move(by) {
    const from = this.selectedIndex;
    this.select(from < 0 ? Math.floor(this.root.scrollTop / (this.#rowHeight || 1)) : from + by);
  }

  /** Acts on a key; answers whether it meant something. */
  key(name) {
    const page = Math.max(1, Math.floor(this.root.clientHeight / (this.#rowHeight || 1)) - 2);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (name in moves) this.move(moves[name]);
    else if (name === "Home") this.select(0);
    else if (name === "End") this.select(this.items.length - 1);
    else if (name === "Enter" && this.selectedItem) this.parts.open?.(this.selectedItem);
    else return false;
    return true;
  }

  /** Draws what is in sight at the next frame. */
  schedule() { this.#frame ||= requestAnimationFrame(() => this.render()); }

  /** Draws what is in sight. */
  render() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#measure();
    const height = this.#rowHeight, { scrollTop, clientHeight } = this.root;
    this.root.setAttribute("aria-rowcount", String(this.items.length + (this.header ? 1 : 0)));
    const needed = Math.min(this.items.length, Math.ceil(clientHeight / height) + 2 * SPARE_ROWS);
    const first = Math.max(0, Math.min(this.items.length - needed, Math.floor(scrollTop / height) - SPARE_ROWS));
    this.#fit(needed);
    let active = null;
    for (let i = first; i < first + needed; i++) {
      // An item keeps its row while scrolling: its place decides which.
      const row = this.#pool[i % needed], key = this.parts.key(this.items[i]);
      this.#place(row, i, height);
      const selected = key === this.selectedKey;
      if (row.selected !== selected) row.node.setAttribute("aria-selected", String(row.selected = selected));
      if (selected) active = row.node.id;
      row.render(this.parts.latest?.(this.items[i]) ?? this.items[i], i);
    }
    if (active) this.root.setAttribute("aria-activedescendant", active);
    else this.root.removeAttribute("aria-activedescendant");
    if (needed) this.parts.inSight?.(first, first + needed - 1);
  }

  stop() { this.sizes.disconnect(); cancelAnimationFrame(this.#frame); this.#frame = -1; }

  get #headHeight() { return this.header?.offsetHeight ?? 0; }

  /** Before anything scrolls: a grid scrolls no further than its rows reach. */
  #measure() {
    const before = this.#rowHeight, top = this.root.scrollTop;
    this.#rowHeight = this.parts.rowHeight();
    const height = `${this.items.length * this.#rowHeight}px`;
    if (this.body.style.height !== height) this.body.style.height = height;
    if (before && before !== this.#rowHeight) this.root.scrollTop = top * (this.#rowHeight / before); // the same rows
  }

  #inView(index) {
    const top = index * this.#rowHeight;
    return top >= this.root.scrollTop - this.#rowHeight && top <= this.root.scrollTop + this.root.clientHeight;
  }

  #fit(needed) {
    while (this.#pool.length > needed) this.#pool.pop().node.remove();
    while (this.#pool.length < needed) {
      const row = this.parts.make();
      row.node.setAttribute("role", "row");
      row.node.id = `${this.prefix}-${this.#pool.length}`;
      row.node.classList.add("row");
      this.#pool.push(row);
      this.body.append(row.node);
    }
  }

  #place(row, index, height) {
    if (row.index === index && row.height === height) return;
    row.index = index;
    row.height = height;
    row.node.style.transform = `translateY(${index * height}px)`;
    row.node.style.height = `${height}px`;
    row.node.setAttribute("aria-rowindex", String(index + (this.header ? 2 : 1)));
  }

  #clicked(event) {
    const row = this.#pool.find((each) => each.node.contains(event.target));
    if (!row || event.target.closest("a, button") || row.index >= this.items.length) return;
    this.select(row.index);
    if (this.parts.opensOnClick) this.parts.open?.(this.items[row.index]);
  }
}

/** The head of a list: a title for each `{name, title}`, or what `shown(column)` makes of it. */
export const header = (columns, shown = ({ title }) => title) => el("div", { role: "rowgroup", class: "head" },
  el("div", { role: "row", class: "row", "aria-rowindex": "1" }, ...columns.map((column) => el("div", { role: "columnheader", class: `cell ${column.name}`, "data-sort": column.name }, shown(column)))));

/** Cells of a row by their column's class. */
export const cells = (...columns) => columns.map((column) => {
  const cell = document.createElement("div");
  cell.setAttribute("role", "gridcell");
  cell.className = `cell ${column}`;
  return cell;
});
