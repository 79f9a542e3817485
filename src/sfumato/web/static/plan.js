// @ts-check
// The slider asks for the plan; nothing is spent by it. The area can be drawn, the numbers are what counts.

import { told } from "./asking.js";

/** @param {string} id */
const at = (id) => /** @type {HTMLInputElement} */ (document.getElementById(id));
const form = /** @type {HTMLFormElement} */ (document.getElementById("release"));
const slider = at("slider");
const steps = (slider.dataset.values ?? "").split(",");
const sides = ["west", "south", "east", "north"];
let waiting = 0;
let asked = 0;

slider.addEventListener("input", () => {
  at("epsilon").value = steps[Number(slider.value)];
  soon();
});
at("epsilon").addEventListener("input", () => {
  const wanted = Number(at("epsilon").value);
  const nearest = steps.reduce((best, one, index) =>
    Math.abs(Math.log(Number(one) / wanted)) < Math.abs(Math.log(Number(steps[best]) / wanted)) ? index : best, 0);
  if (wanted > 0) slider.value = String(nearest);
});
for (const id of ["epsilon", "users", "ledger", ...sides]) at(id).addEventListener("input", soon);
slider.setAttribute("aria-valuetext", `epsilon ${steps[Number(slider.value)]}`);

function soon() {
  slider.setAttribute("aria-valuetext", `epsilon ${at("epsilon").value}`);
  at("price").textContent = at("epsilon").value;
  window.clearTimeout(waiting);
  waiting = window.setTimeout(plan, 250);
}

async function plan() {
  const turn = ++asked;
  const query = new URLSearchParams();
  const whole = sides.every((side) => at(side).value.trim());
  for (const id of ["epsilon", "users", "ledger", ...(whole ? sides : [])]) query.set(id, at(id).value);
  try {
    const found = await told(await fetch(`/plan.json?${query}`));
    if (turn !== asked) return;  // a later question was asked
    at("odds").textContent = found.odds;
    at("left").textContent = found.left
      ? `Left in the ledger: ${found.left.words} for each ${found.left.unit}.${found.left.pays ? "" : " That does not pay for this map."}`
      : "";
    at("left").className = found.left && !found.left.pays ? "alert" : "";
    at("forecast").textContent = found.forecast.join(" ");
    /** @type {any} */ (at("picture")).src = found.picture;
    at("city").hidden = false;
  } catch (problem) {
    if (turn !== asked) return;
    at("odds").textContent = "";
    at("left").textContent = problem instanceof Error ? problem.message : String(problem);
    at("left").className = "alert";
    at("forecast").textContent = "";
    at("city").hidden = true;
  }
}

form.addEventListener("submit", () => {
  const go = /** @type {HTMLButtonElement} */ (document.getElementById("go"));
  go.disabled = true;
  go.textContent = "Releasing: it is charged once, and you may close this tab";
});

// the chart

const chart = /** @type {SVGSVGElement} */ (/** @type {unknown} */ (document.getElementById("draw")));
const box = /** @type {SVGRectElement} */ (chart.querySelector(".area"));
const lines = [];
for (let x = -180; x <= 180; x += 30) lines.push(`M${x} -90V90`);
for (let y = -90; y <= 90; y += 30) lines.push(`M-180 ${y}H180`);
chart.querySelector(".graticule")?.append(path(lines.join("")));

/** @param {string} d */
function path(d) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", "path");
  made.setAttribute("d", d);
  return made;
}

/** @param {PointerEvent} event */
function place(event) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM()?.inverse());
  return [Math.min(180, Math.max(-180, point.x)), Math.min(90, Math.max(-90, -point.y))];
}

/** @type {number[] | null} */
let from = null;
chart.addEventListener("pointerdown", (event) => {
  from = place(event);
  chart.setPointerCapture(event.pointerId);
});
chart.addEventListener("pointermove", (event) => {
  if (!from) return;
  const to = place(event);
  const drawn = [Math.min(from[0], to[0]), Math.min(from[1], to[1]), Math.max(from[0], to[0]), Math.max(from[1], to[1])];
  sides.forEach((side, index) => { at(side).value = drawn[index].toFixed(2); });
  show();
});
chart.addEventListener("pointerup", () => { from = null; soon(); });
for (const side of sides) at(side).addEventListener("input", show);

function show() {
  const [west, south, east, north] = sides.map((side) => Number(at(side).value));
  if (!(west < east && south < north)) return;
  box.setAttribute("x", String(west));
  box.setAttribute("y", String(-north));
  box.setAttribute("width", String(east - west));
  box.setAttribute("height", String(north - south));
}

plan();
