// The only places that make elements. Everything shown arrives as text or as an attribute, never as markup.

const SVG = "http://www.w3.org/2000/svg";

const fill = (node, given, children) => {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return node;
};

/** An element; `on…` are listeners, strings among the children are text. */
export const el = (tag, given = {}, ...children) => fill(document.createElement(tag), given, children);

/** An element of SVG. */
export const svg = (tag, given = {}, ...children) => fill(document.createElementNS(SVG, tag), given, children);

/** Sets text only where it differs: writing it costs a layout. */
export const setText = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

/** Sets or removes an attribute only where it differs. */
export const setAttribute = (node, name, value) => {
  if (value === null) node.removeAttribute(name);
  else if (node.getAttribute(name) !== value) node.setAttribute(name, value);
};

/** Whether somebody is writing, so that letters are no commands. */
export const isWriting = (target) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** A labelled control. */
export const labelled = (text, control, given = {}) => el("label", { class: "field", ...given }, el("span", {}, text), control);

/** A select of `[value, text]` pairs. */
export const select = (options, value, given = {}) => {
  const made = el("select", given, ...options.map(([each, text]) => el("option", { value: each }, text)));
  made.value = value;
  return made;
};

/** Name and value pairs, those without a value left out. */
export const pairs = (entries) =>
  el("dl", { class: "pairs" }, ...entries.filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
