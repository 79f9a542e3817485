// @ts-check
// Every change of the form asks for the plan; nothing is spent by it.

import { csrf, told } from "./asking.js";

/** @param {string} id @returns {any} */
const at = (id) => document.getElementById(id);
const form = /** @type {HTMLFormElement} */ (at("release"));
const slider = at("slider");
/** @type {string[]} */
const steps = (slider.dataset.values ?? "").split(",");
const sides = ["west", "south", "east", "north"];
const UNSENT = ["csrf", "key", "title", "note"];
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
for (const one of form.elements) {
  one.addEventListener("input", soon);
  one.addEventListener("change", soon);
}
slider.setAttribute("aria-valuetext", `epsilon ${steps[Number(slider.value)]}`);

function soon() {
  at("refused").textContent = "";
  slider.setAttribute("aria-valuetext", `epsilon ${at("epsilon").value}`);
  window.clearTimeout(waiting);
  waiting = window.setTimeout(plan, 250);
}

async function plan() {
  const turn = ++asked;
  const query = new URLSearchParams();
  const whole = sides.every((side) => at(side).value.trim());
  for (const [name, value] of new FormData(form))
    if (value && !UNSENT.includes(name) && (whole || !sides.includes(name))) query.append(name, String(value));
  try {
    const found = await told(await fetch(`/plan.json?${query}`));
    if (turn !== asked) return;  // a later question was asked
    at("odds").textContent = found.odds;
    at("left").textContent = found.left
      ? `Left in the ledger: ${found.left.words} for each ${found.left.unit}.${found.left.pays || found.problem ? "" : " That does not pay for this map."}`
      : "";
    at("left").className = found.left && !found.left.pays ? "alert" : "";
    // Before a file's columns and area are named there is nothing to refuse.
    at("problem").textContent = found.problem ? `A release would be refused: ${found.problem}` : "";
    // A table, an empty line, and then sentences; of a refusal, a sentence alone.
    const gap = found.forecast.indexOf("");
    at("forecast").textContent = found.forecast.slice(gap + 1).filter((/** @type {string} */ one) => one).join("\n");
    at("numbers").textContent = gap < 0 ? "" : found.forecast.slice(0, gap).join("\n");
    at("in-numbers").hidden = gap < 0;
    at("price").textContent = found.price ? `${found.price.words}${found.price.count > 1 ? ` for ${found.price.count} maps` : ""}` : found.problem ? "" : `epsilon ${at("epsilon").value}`;
    at("city").hidden = !found.picture;
    if (found.picture) at("picture").src = found.picture;
  } catch (problem) {
    if (turn !== asked) return;
    for (const id of ["odds", "forecast", "problem"]) at(id).textContent = "";
    at("left").textContent = problem instanceof Error ? problem.message : String(problem);
    at("left").className = "alert";
    at("city").hidden = true;
  }
}

// A ledger is made without leaving the page, so that what was filled in stays.
const maker = /** @type {HTMLFormElement} */ (at("make-ledger"));
maker.addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const made = await told(await fetch(maker.action, {
      method: "POST",
      headers: { accept: "application/json", "content-type": "application/json", "x-csrf-token": csrf() },
      body: JSON.stringify(Object.fromEntries(new FormData(maker))),
    }));
    at("ledger").value = made.ledger;
    at("made").textContent = `Made: ${made.ledger}`;
    at("made").className = "";
    at("no-ledger")?.remove();
    at("making").open = false;
    at("ledger").focus();
    plan();
  } catch (problem) {
    at("made").textContent = problem instanceof Error ? problem.message : String(problem);
    at("made").className = "alert";
  }
});

// A refusal is told beside the button, and what was filled in stays. The release goes on if the tab is closed.
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  at("go").disabled = true;
  at("going").textContent = "Releasing: it is charged once, and you may close this tab.";
  at("refused").textContent = "";
  try {
    const made = await told(await fetch(form.action, {
      method: "POST",
      headers: { accept: "application/json", "content-type": "application/json", "x-csrf-token": csrf() },
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    }));
    location.assign(made.address);
  } catch (problem) {
    at("going").textContent = "";
    at("refused").textContent = problem instanceof Error ? problem.message : String(problem);
    at("go").disabled = false;
    plan();
  }
});

plan();
