"use strict";
const root = document.documentElement;
const chosen = new URLSearchParams(location.hash.slice(1)).get("ground");
if (chosen) root.dataset.ground = chosen;

const ground = document.getElementById("ground");
const isDark = () => root.dataset.ground ? root.dataset.ground === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const name = () => { ground.textContent = isDark() ? "Light" : "Dark"; };
ground.hidden = false;
name();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
ground.addEventListener("click", () => { root.dataset.ground = isDark() ? "light" : "dark"; name(); });

const selected = (code) => {
  const range = document.createRange();
  range.selectNodeContents(code);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
};
const copied = async (code) => {
  try { await navigator.clipboard.writeText(code.textContent); return true; } catch { selected(code); return document.execCommand("copy"); }
};
for (const button of document.querySelectorAll(".query button")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.textContent = (await copied(button.previousElementSibling)) ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// Vega-Lite warns of every chart that is as wide as the page and as high as its rows: both are meant.
const warn = console.warn;
console.warn = (...said) => { if (!said.join(" ").includes('Dropping "fit-y"')) warn(...said); };
// Expressions are interpreted (`ast`), so that the page needs no right to evaluate text as a program.
const narrow = innerWidth < 600;
const shortened = (part) => {
  for (const [name, value] of Object.entries(part)) {
    if (name === "labelLimit") part[name] = Math.min(value, 120);
    else if (value && typeof value === "object" && name !== "datasets") shortened(value);
  }
};
const drawn = [...document.querySelectorAll(".picture")].map((place) => {
  const spec = JSON.parse(document.getElementById(place.dataset.spec).textContent);
  if (narrow) { spec.config.legend.columns = 1; shortened(spec); }
  const facet = spec.facet ? spec : spec.encoding?.facet;
  if (facet?.columns) {
    const columns = Math.max(1, Math.min(facet.columns, Math.floor(place.clientWidth / 250)));
    facet.columns = columns;
    if (spec.spec) spec.spec.width = Math.min(360, Math.floor((place.clientWidth - 70) / columns) - 30);
  }
  return vegaEmbed(place, spec, { actions: false, renderer: "svg", ast: true, logLevel: 1 })
    .catch(() => { place.textContent = "This picture could not be drawn."; });
});
Promise.all(drawn).then(() => { root.dataset.drawn = drawn.length; });
let shut = [];
addEventListener("beforeprint", () => { shut = [...document.querySelectorAll("details:not([open])")]; shut.forEach((each) => { each.open = true; }); });
addEventListener("afterprint", () => shut.forEach((each) => { each.open = false; }));
