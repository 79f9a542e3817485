// @ts-check
// The chart on which a public area is drawn; the numbers beside it are what is sent, and say the same.

import { csrf, told } from "./asking.js";
import { LAND } from "./map/land.js";

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);
const chart = /** @type {SVGSVGElement} */ (at("draw"));
const box = /** @type {SVGRectElement} */ (chart.querySelector(".area"));
const sides = ["west", "south", "east", "north"];
const WORLD = [-180, -90, 180, 90];
const SVG = "http://www.w3.org/2000/svg";
let seen = WORLD;

/** @param {string} where @param {string} d */
const path = (where, d) => {
  const made = document.createElementNS(SVG, "path");
  made.setAttribute("d", d);
  chart.querySelector(where)?.append(made);
};
const line = (/** @type {number[][]} */ one) => `M${one.map(([x, y]) => `${x} ${-y}`).join("L")}`;
const lines = [];
for (let x = -180; x <= 180; x += 30) lines.push(`M${x} -90V90`);
for (let y = -90; y <= 90; y += 30) lines.push(`M-180 ${y}H180`);
path(".graticule", lines.join(""));
/** A ring across the antimeridian goes on beyond it. @param {number[][]} ring */
const unbroken = (ring) => {
  let turn = 0;
  return ring.map(([x, y], n) => {
    const step = n ? x - ring[n - 1][0] : 0;
    turn += step > 180 ? -360 : step < -180 ? 360 : 0;
    return [x + turn, y];
  });
};
const rings = LAND.flat().map(unbroken);
path(".land", [-360, 0, 360].flatMap((turn) => rings.map((ring) => `${line(ring.map(([x, y]) => [x + turn, y]))}Z`)).join(""));

/** Show a box of the plane, in the chart's proportions. @param {number[]} wanted */
const look = ([west, south, east, north]) => {
  const wide = Math.max(east - west, (north - south) * 2, 1e-6), high = wide / 2;
  const x = (west + east) / 2 - wide / 2, y = (south + north) / 2 - high / 2;
  seen = [x, y, x + wide, y + high];
  chart.setAttribute("viewBox", `${x} ${-(y + high)} ${wide} ${high}`);
};
/** @param {number} times */
const zoom = (times) => {
  const x = (seen[0] + seen[2]) / 2, y = (seen[1] + seen[3]) / 2;
  const wide = ((seen[2] - seen[0]) * times) / 2, high = ((seen[3] - seen[1]) * times) / 2;
  look([x - wide, y - high, x + wide, y + high]);
};
const area = () => sides.map((side) => Number(at(side).value));
const whole = () => {
  const [west, south, east, north] = area();
  return sides.every((side) => at(side).value.trim()) && west < east && south < north;
};

const show = () => {
  box.style.display = whole() ? "" : "none";
  if (!whole()) return;
  const [west, south, east, north] = area();
  for (const [name, value] of Object.entries({ x: west, y: -north, width: east - west, height: north - south }))
    box.setAttribute(name, String(value));
};
/** @param {number[]} drawn */
const say = (drawn) => {
  const digits = Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(Math.max(drawn[2] - drawn[0], 1e-6)))));
  sides.forEach((side, n) => { at(side).value = drawn[n].toFixed(digits); });
  show();
};
const changed = () => at("west").dispatchEvent(new Event("input", { bubbles: true }));

/** @param {MouseEvent} event */
const place = (event) => {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM()?.inverse());
  return [point.x, -point.y];
};

let moving = false;
/** @type {number[] | null} */
let from = null;
chart.addEventListener("pointerdown", (event) => {
  from = place(event);
  chart.setPointerCapture(event.pointerId);
});
chart.addEventListener("pointermove", (event) => {
  if (!from) return;
  const to = place(event);
  if (moving) {
    const x = from[0] - to[0], y = from[1] - to[1];
    look([seen[0] + x, seen[1] + y, seen[2] + x, seen[3] + y]);
    return;
  }
  say([Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])]);
});
chart.addEventListener("pointerup", () => {
  from = null;
  if (!moving) changed();
});
chart.addEventListener("wheel", (event) => {
  event.preventDefault();
  const [x, y] = place(event), times = event.deltaY > 0 ? 1.25 : 0.8;
  look([x + (seen[0] - x) * times, y + (seen[1] - y) * times, x + (seen[2] - x) * times, y + (seen[3] - y) * times]);
}, { passive: false });
at("nearer").addEventListener("click", () => zoom(0.5));
at("farther").addEventListener("click", () => zoom(2));
at("all").addEventListener("click", () => look(WORLD));
const fit = () => {
  if (!whole()) return;
  const [west, south, east, north] = area(), x = (east - west) / 4, y = (north - south) / 4;
  look([west - x, south - y, east + x, north + y]);
};
at("fit").addEventListener("click", fit);
at("move").addEventListener("click", () => {
  moving = !moving;
  at("move").setAttribute("aria-pressed", String(moving));
});
for (const side of sides) {
  at(side).addEventListener("input", show);
  at(side).addEventListener("change", fit);  // a city that is typed is a dot on the world
}
show();

// public files of the user's own

/** @param {File} file @param {string} query */
const send = async (file, query) => told(await fetch(`/ground${query}`, {
  method: "POST",
  body: file,
  headers: { accept: "application/json", "content-type": "application/octet-stream", "x-csrf-token": csrf(), "x-file-name": encodeURIComponent(file.name) },
}));
/** @param {unknown} problem */
const words = (problem) => (problem instanceof Error ? problem.message : String(problem));

/** @type {Record<string, string>} */
const grounds = {};
at("ground").addEventListener("change", async () => {
  const file = at("ground").files?.[0];
  if (!file) return;
  at("ground-said").textContent = `reading ${file.name} …`;
  try {
    const { file: key, ground } = await send(file, "");
    const [west, south, east, north] = ground.bounds;
    const image = Boolean(ground.picture);
    at(image ? "ground-key" : "outline-key").value = key;
    if (image) {
      const made = document.createElementNS(SVG, "image");
      for (const [name, value] of Object.entries({ href: ground.picture, x: west, y: -north, width: east - west, height: north - south, preserveAspectRatio: "none" }))
        made.setAttribute(name, String(value));
      chart.querySelector(".under")?.replaceChildren(made);
    } else {
      chart.querySelector(".outline")?.replaceChildren();
      path(".outline", ground.lines.map(line).join(""));
    }
    if (!whole()) say(ground.bounds);
    fit();
    grounds[image ? "image" : "outline"] = `${ground.file} (sha256 ${ground.sha256.slice(0, 12)})`;
    at("ground-said").textContent = `${Object.values(grounds).join(" and ")}, declared public by you: maps are drawn over ${Object.keys(grounds).length > 1 ? "both" : "it"}.`;
    changed();
  } catch (problem) {
    at("ground-said").textContent = words(problem);
  }
});

at("images-files").addEventListener("change", async () => {
  const files = [...at("images-files").files];
  at("images-said").textContent = "reading …";
  at("images-shown").replaceChildren();
  try {
    const found = [];
    for (const file of files) found.push(await send(file, "?kind=image"));
    at("images").value = found.map((one) => one.file).join(",");
    at("on-earth").hidden = found.length > 0;  // the area is the image
    const [, , wide, high] = found[0].ground.bounds;
    for (const one of found) {
      const image = document.createElement("img");
      image.src = one.ground.picture;
      image.alt = one.name;
      at("images-shown").append(image);
    }
    at("images-said").textContent = `${found.length === 1 ? found[0].name : `${found.length} images`}, ${wide} x ${high} pixels, public.`;
    if (found.length > 1 && !at("values").value) {
      at("values").value = found.map((one) => one.name.replace(/\.[^.]*$/, "")).join(", ");
      at("by-column").open = true;
    }
    changed();
  } catch (problem) {
    at("images").value = "";
    at("images-said").textContent = words(problem);
  }
});
