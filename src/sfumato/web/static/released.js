// @ts-check
// A released map: shown, and areas drawn on it. What a mouse draws is typed into the field, which is what is sent.

import { told } from "./asking.js";
import { showMap } from "./map/show_map.js";

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);
const box = /** @type {HTMLElement} */ (at("map"));

const view = await told(await fetch(box.dataset.view ?? "", { headers: { accept: "application/json" } })).catch((problem) => {
  box.textContent = problem instanceof Error ? problem.message : String(problem);
  return null;
});

if (view) {
  const shown = await showMap(box, view, {
    promise: false,
    moved: (n) => {
      // What is downloaded is what is looked at.
      if (at("which")) { at("which").selectedIndex = n; at("which").dispatchEvent(new Event("change")); }
      if (at("area-group") && view.grounds.length > 1) at("area-group").value = view.maps[n].group;
    },
  });
  if (at("area-group") && view.grounds.length > 1) at("area-group").value = view.maps[0].group;
  drawing(shown);
}

at("which")?.addEventListener("change", () => {
  for (const link of document.querySelectorAll("#formats a[data-suffix]")) {
    const one = /** @type {HTMLAnchorElement} */ (link);
    one.href = `/maps/${at("which").value}/map${one.dataset.suffix}`;
  }
});

/** @param {import("./map/show_map.js").Shown} shown */
function drawing(shown) {
  const map = shown.map;
  const buttons = { rectangle: at("rectangle"), polygon: at("polygon") };
  if (!map) {  // no WebGL: corners are typed
    for (const button of Object.values(buttons)) button.hidden = true;
    return;
  }
  /** @type {"" | "rectangle" | "polygon"} */
  let mode = "";
  /** @type {[number, number][]} */
  let corners = [];
  let pressed = false;
  const digits = Math.max(0, 4 - Math.floor(Math.log10(view.grid[2] - view.grid[0])));
  map.addSource("drawn", { type: "geojson", data: feature() });
  map.addLayer({ id: "drawn", type: "line", source: "drawn", paint: { "line-color": "#c2410c", "line-width": 3 } });

  /** @param {"" | "rectangle" | "polygon"} wanted */
  const turn = (wanted) => {
    mode = mode === wanted ? "" : wanted;
    const now = /** @type {string} */ (mode);
    corners = [];
    for (const [name, button] of Object.entries(buttons)) button.setAttribute("aria-pressed", String(name === mode));
    map.getCanvas().style.cursor = mode ? "crosshair" : "";
    if (mode) { map.dragPan.disable(); map.doubleClickZoom.disable(); } else { map.dragPan.enable(); map.doubleClickZoom.enable(); }
    at("area-said").textContent = now === "polygon" ? "Click the corners, then press the button again, or Enter." : mode ? "Drag over the map." : "";
  };
  for (const [name, button] of Object.entries(buttons)) button.addEventListener("click", () => turn(/** @type {"rectangle" | "polygon"} */ (name)));

  function feature() {
    const [a, b] = corners;
    const ring = mode === "rectangle" && b ? [a, [b[0], a[1]], b, [a[0], b[1]], a] : corners.length > 2 ? [...corners, a] : corners;
    return { type: "Feature", properties: {}, geometry: {
      type: "LineString", coordinates: ring.map(([x, y]) => shown.place(Number(x), Number(y))) } };
  }
  const tell = () => {
    map.getSource("drawn").setData(feature());
    at("corners").value = corners.map(([x, y]) => `${x.toFixed(digits)} ${y.toFixed(digits)}`).join(", ");
  };
  map.on("mousedown", (/** @type {any} */ event) => {
    if (mode !== "rectangle") return;
    pressed = true;
    corners = [shown.units(event.lngLat)];
  });
  map.on("mousemove", (/** @type {any} */ event) => {
    if (!pressed) return;
    corners = [corners[0], shown.units(event.lngLat)];
    tell();
  });
  map.on("mouseup", () => {
    if (!pressed) return;
    pressed = false;
    at("area-said").textContent = "Now name it below and add it.";
    at("area-name").focus();
  });
  map.on("click", (/** @type {any} */ event) => {
    if (mode !== "polygon") return;
    corners = [...corners, shown.units(event.lngLat)];
    tell();
  });
  map.getCanvas().addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && mode === "polygon") { turn("polygon"); at("area-name").focus(); }
  });
}
