"use strict";
// Runs before the first paint, so that a chosen colour scheme does not flash. No module: those run later.
(() => {
  try {
    const chosen = localStorage.getItem("turntide.ground");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.ground = chosen;
  } catch { /* storage is forbidden: the system's scheme stands */ }
})();
