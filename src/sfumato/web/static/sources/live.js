// @ts-check
// The live page: rounds come as events from our own server; every word and number in them is shown as text.

import { csrf, told } from "../asking.js";

/**
 * @typedef {{x?: number, y?: number, name?: string, mass?: number, radius?: number, probability?: number}} Place
 * @typedef {{time: string, missing: string[], failure: string, recovery: any}} Round
 * @typedef {{kind: string, nodes: number[][], names: string[], edges: number[][], box: number[],
 *   sensors: {name: string, x: number, y: number}[]}} Drawn
 */

const SVG = "http://www.w3.org/2000/svg", WIDE = 640, HIGH = 400, EDGE = 30;
/** @param {string} id @returns {any} */
const get = (id) => document.getElementById(id);
const picture = get("picture"), past = get("history");
const port = new URLSearchParams(location.search).get("port") ?? "8787";
get("port").value = port;

/** @type {Round[]} */
let rounds = [];
/** @type {Drawn | null} */
let drawn = null;
/** @type {Map<string, any>} */
const followed = new Map();
/** @type {{image: string | null, bounds: number[] | null, lines: number[][][]} | null} */
let plan = null;
let following = true;

/** @param {string} tag @param {Record<string, string | number>} attributes @param {string} [text] */
const draw = (tag, attributes, text = "") => {
  const found = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, String(value));
  found.textContent = text;
  picture.append(found);
};

/** Where things lie on the picture: the same in every round. */
const placing = () => {
  const [west, south, east, north] = drawn ? drawn.box : [0, 0, 1, 1], flat = drawn !== null && drawn.kind !== "line";
  const wide = (WIDE - 2 * EDGE) / Math.max(east - west, 1e-9), high = (HIGH - 2 * EDGE) / Math.max(north - south, 1e-9);
  const scale = flat ? Math.min(wide, high) : wide;
  // In the middle of what is left of the picture.
  const left = (WIDE - scale * (east - west)) / 2, low = flat ? (HIGH + scale * (north - south)) / 2 : HIGH / 2;
  const at = (/** @type {number} */ x, /** @type {number} */ y) => [left + (x - west) * scale, low - (y - south) * scale]  // beside a line lies only its plan;
  /** @param {Place} one */
  const of = (one) => {
    const node = drawn?.nodes[drawn.names.indexOf(one.name ?? "")];
    return node ? at(node[0], node[1]) : at(one.x ?? 0, one.y ?? 0);
  };
  return { at, of, scale, flat };
};

/** @param {Place} one */
const words = (one) => one.name ?? [one.x, one.y].filter((n) => n !== undefined).map((n) => Number(n).toPrecision(3)).join(", ");
/** @param {string} id @param {string[][]} rows */
const fill = (id, rows) => get(id).replaceChildren(...(rows.length ? rows : [["none", "", ""]]).map((cells) => {
  const row = document.createElement("tr");
  row.append(...cells.slice(0, id === "found" ? 2 : 3).map((text) => { const cell = document.createElement("td"); cell.textContent = text; return cell; }));
  return row;
}));

/** The site, under what was found. @param {ReturnType<typeof placing>} placed @param {string[]} missing */
const ground = ({ at, flat }, missing) => {
  if (plan?.image && plan.bounds) {
    const [x, low] = at(plan.bounds[0], plan.bounds[1]), [right, y] = at(plan.bounds[2], plan.bounds[3]);
    draw("image", { href: plan.image, x, y, width: right - x, height: low - y, preserveAspectRatio: "none" });
  }
  for (const one of plan?.lines ?? []) draw("polyline", { points: one.map(([x, y]) => at(x, y).join(",")).join(" "), class: "plan" });
  if (!drawn) return;
  if (!flat) draw("line", { x1: EDGE, x2: WIDE - EDGE, y1: HIGH / 2, y2: HIGH / 2, class: "axis" });
  for (const [a, b] of drawn.edges) {
    const [from, to] = [drawn.nodes[a], drawn.nodes[b]].map(([x, y]) => at(x, y));
    draw("line", { x1: from[0], y1: from[1], x2: to[0], y2: to[1], class: "edge" });
  }
  for (const [x, y] of drawn.nodes.map((one) => at(one[0], one[1]))) draw("circle", { cx: x, cy: y, r: 2.5, class: "node" });
  for (const one of drawn.sensors) {
    const [x, y] = at(one.x, one.y);
    draw("path", { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, class: missing.includes(one.name) ? "sensor missing" : "sensor" });
  }
};

const show = () => {
  const round = rounds[Number(past.value)];
  if (!round) return;
  const result = round.recovery, answer = result?.answer;
  /** @type {Place[]} */ const sources = answer?.sources ?? result?.sources ?? [];
  /** @type {Place[]} */ const bands = answer?.bands ?? [];
  const track = followed.get(round.time), graph = drawn?.kind === "graph";
  picture.textContent = "";
  const placed = placing(), { of, scale, flat } = placed;
  ground(placed, round.missing);
  for (const one of bands) {
    // On a graph a radius is a number of steps: the ring is a sign, the table has the number.
    const [x, y] = of(one), reach = graph ? 10 + 8 * (one.radius ?? 0) : (one.radius ?? 0) * scale;
    if (flat) draw("circle", { cx: x, cy: y, r: Math.max(reach, 6), class: "band" });
    else draw("line", { x1: x - reach, x2: x + reach, y1: y + 18, y2: y + 18, class: "band" });
  }
  const most = Math.max(...sources.map((one) => one.mass ?? 0), 1e-12);
  for (const one of sources) {
    const [x, y] = of(one);
    draw("circle", { cx: x, cy: y, r: 3 + 10 * Math.sqrt((one.mass ?? 0) / most), class: "found" });
    if (one.name !== undefined) draw("text", { x: x + 14, y: y - 8 }, one.name);
  }
  for (const one of track?.sources ?? []) {
    const [x, y] = of(one);
    draw("path", { d: `M${x} ${y - 12}l12 12l-12 12l-12 -12z`, class: "followed" });
  }
  fill("found", sources.map((one) => [words(one), (one.mass ?? 0).toPrecision(3)]));
  fill("bands", bands.map((one) => [words(one), `${Number(one.radius).toPrecision(2)}${graph ? " steps" : ""}`, `${Math.round(100 * (one.probability ?? 0))} %`]));
  const verdict = round.failure || result?.verdict?.said || "";
  get("verdict").textContent = verdict ? verdict[0].toUpperCase() + verdict.slice(1) : "";
  get("followed").textContent = track ? `Followed over rounds: ${track.sources.map((/** @type {Place} */ one) => `${words(one)} ± ${Number(one.radius).toPrecision(2)}`).join("; ")}.` : "";
  get("certificate").textContent = result ? `Certificate: ${result.status}${result.gap == null ? "" : `, gap ${Number(result.gap).toPrecision(2)}`}.` : "";
  age();
};

const age = () => {
  const round = rounds[Number(past.value)];
  if (!round) return;
  const seconds = Math.round((Date.now() - Date.parse(round.time)) / 1000);
  const old = Number.isFinite(seconds) ? `, ${Math.max(seconds, 0)} s ago` : "";
  get("when").textContent = `${Number(past.value) + 1} of ${rounds.length}: ${round.time}${old}`;
};

const slide = () => {
  past.max = String(Math.max(rounds.length - 1, 0));
  past.disabled = rounds.length < 2;
  if (following) past.value = past.max;
  show();
};
past.addEventListener("input", () => { following = past.value === past.max; show(); });
setInterval(age, 1000);

const stream = new EventSource(`/sources/events?port=${encodeURIComponent(port)}`);
let asked = false;
stream.addEventListener("history", (event) => { rounds = JSON.parse(event.data); slide(); });
stream.addEventListener("state", async (event) => {
  const state = JSON.parse(event.data);
  get("site").textContent = state.site;
  get("status").textContent = state.store_problem || (state.connected ? "Live." : "The collector has lost its broker.");
  get("promise").textContent = state.last?.recovery?.statement || get("promise").textContent;
  for (const one of state.track?.rounds ?? []) followed.set(one.time, one);
  if (state.last && rounds.at(-1)?.time !== state.last.time) rounds = [...rounds, state.last].slice(-200);
  document.body.dataset.rounds = String(rounds.length);
  slide();
  if (asked) return;
  asked = true;  // once: the site does not change while it is watched
  try {
    drawn = (await told(await fetch(`/sources/site.json?port=${encodeURIComponent(port)}`))).drawn;
    // A line has no height, and a plan must.
    if (drawn && drawn.kind !== "line" && !get("plan-bounds").value) get("plan-bounds").value = drawn.box.map((n) => Number(n.toPrecision(6))).join(",");
    slide();
  } catch {
    asked = false;
  }
});
stream.addEventListener("away", () => { get("status").textContent = `No collector answers at port ${port} of this machine; trying again.`; });
stream.addEventListener("error", () => { get("status").textContent = "This page's server does not answer; trying again."; });

get("plan").addEventListener("change", lay);
get("plan-bounds").addEventListener("change", lay);

async function lay() {
  const file = get("plan").files?.[0];
  if (!file) return;
  try {
    const found = await told(await fetch(`/sources/plan?bounds=${encodeURIComponent(get("plan-bounds").value)}`, {
      method: "POST",
      body: file,
      headers: { accept: "application/json", "content-type": "application/octet-stream", "x-csrf-token": csrf(), "x-file-name": encodeURIComponent(file.name) },
    }));
    plan = found;
    get("plan-said").textContent = found.said;
    show();
  } catch (problem) {
    get("plan-said").textContent = problem instanceof Error ? problem.message : String(problem);
  }
}
