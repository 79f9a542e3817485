// @ts-check
// Two maps side by side, on one scale; who moves one moves both.

import { told } from "./asking.js";
import { showMap } from "./map/show_map.js";

const both = /** @type {HTMLElement} */ (document.getElementById("both-maps"));
const sides = /** @type {HTMLElement[]} */ ([0, 1].map((n) => document.getElementById(`side-${n}`)));

try {
  const view = await told(await fetch(both.dataset.view ?? ""));
  // One and the same map is in the view twice.
  const shown = await Promise.all(sides.map((side, n) => showMap(side, view, { only: Math.min(n, view.maps.length - 1), promise: false })));
  const maps = shown.map((one) => one.map).filter(Boolean);
  let leading = false;
  if (maps.length === 2) maps.forEach((map, n) => map.on("move", () => {
    if (leading) return;
    leading = true;
    maps[1 - n].jumpTo({ center: map.getCenter(), zoom: map.getZoom() });
    leading = false;
  }));
} catch (problem) {
  for (const side of sides) side.textContent = problem instanceof Error ? problem.message : String(problem);
}
