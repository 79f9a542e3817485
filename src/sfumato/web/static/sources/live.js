// @ts-check
// The live page: rounds come as events from our own server; every word and number in them is shown as text.

/**
 * @typedef {{x?: number, y?: number, name?: string, mass?: number, radius?: number, probability?: number}} Place
 * @typedef {{time: string, missing: string[], failure: string, recovery: any}} Round
 */

const SVG = "http://www.w3.org/2000/svg", WIDE = 640, HIGH = 400, EDGE = 30;
/** @param {string} id @returns {HTMLElement} */
const get = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const picture = get("picture"), past = /** @type {HTMLInputElement} */ (get("history"));
const port = new URLSearchParams(location.search).get("port") ?? "8787";
/** @type {HTMLInputElement} */ (get("port")).value = port;

/** @type {Round[]} */
let rounds = [];
/** @type {any} */
let site = null;
let following = true;

/** @param {string} tag @param {Record<string, string | number>} attributes @param {string} [text] */
const draw = (tag, attributes, text = "") => {
  const found = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, String(value));
  found.textContent = text;
  picture.append(found);
};

/** @returns {{name: string, at: number[]}[]} */
const sensors = () => (!site ? [] : site.sensors.names.map((/** @type {string} */ name, /** @type {number} */ i) =>
  ({ name, at: [site.sensors.positions[i]].flat() })));

/**
 * Where things lie on the picture: on a line and a plane by their coordinates, on a graph in a circle.
 * @param {Place[]} places
 */
const placing = (places) => {
  const names = [...new Set(places.flatMap((one) => (one.name === undefined ? [] : [one.name])))].sort();
  if (names.length)
    return { scale: 0, flat: false, of: (/** @type {Place} */ one) => {
      const turn = (2 * Math.PI * names.indexOf(one.name ?? "")) / names.length;
      return [WIDE / 2 + 150 * Math.cos(turn), HIGH / 2 + 150 * Math.sin(turn)];
    } };
  const flat = places.some((one) => one.y !== undefined);
  const seen = [...places.map((one) => [one.x ?? 0, one.y ?? 0]), ...sensors().map((one) => [one.at[0], one.at[1] ?? 0])];
  const low = [0, 1].map((k) => Math.min(...seen.map((at) => at[k]))), high = [0, 1].map((k) => Math.max(...seen.map((at) => at[k])));
  const spans = [0, 1].map((k) => Math.max(high[k] - low[k], 1e-9));
  const scale = flat ? Math.min((WIDE - 2 * EDGE) / spans[0], (HIGH - 2 * EDGE) / spans[1]) : (WIDE - 2 * EDGE) / spans[0];
  return { scale, flat, of: (/** @type {Place} */ one) => [
    EDGE + ((one.x ?? 0) - low[0]) * scale, flat ? HIGH - EDGE - ((one.y ?? 0) - low[1]) * scale : HIGH / 2] };
};

/** @param {Place} one */
const words = (one) => one.name ?? [one.x, one.y].filter((n) => n !== undefined).map((n) => Number(n).toPrecision(3)).join(", ");

const show = () => {
  const round = rounds[Number(past.value)];
  if (!round) return;
  const found = round.recovery, answer = found?.answer;
  /** @type {Place[]} */ const sources = answer?.sources ?? found?.sources ?? [];
  /** @type {Place[]} */ const bands = answer?.bands ?? [];
  picture.textContent = "";
  const { of, scale, flat } = placing([...sources, ...bands]);
  if (scale && !flat) draw("line", { x1: EDGE, x2: WIDE - EDGE, y1: HIGH / 2, y2: HIGH / 2, class: "axis" });
  if (scale) for (const one of sensors()) {
    const [x, y] = of({ x: one.at[0], y: one.at[1] }), kind = round.missing.includes(one.name) ? "sensor missing" : "sensor";
    draw("path", { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, class: kind });
  }
  for (const one of bands) {
    const [x, y] = of(one), reach = (one.radius ?? 0) * scale;
    if (flat) draw("circle", { cx: x, cy: y, r: reach, class: "band" });
    else draw("line", { x1: x - reach, x2: x + reach, y1: y + 14, y2: y + 14, class: "band" });
  }
  const most = Math.max(...sources.map((one) => one.mass ?? 0), 1e-12);
  for (const one of sources) {
    const [x, y] = of(one);
    draw("circle", { cx: x, cy: y, r: 3 + 12 * Math.sqrt((one.mass ?? 0) / most), class: "found" });
    if (one.name !== undefined) draw("text", { x: x + 16, y: y + 4 }, one.name);
  }
  const rows = sources.map((one, i) => {
    const row = document.createElement("tr"), band = bands[i];
    const told = [words(one), (one.mass ?? 0).toPrecision(3), band ? `± ${Number(band.radius).toPrecision(2)} (${Math.round(100 * (band.probability ?? 0))}%)` : "–"];
    row.append(...told.map((text) => { const cell = document.createElement("td"); cell.textContent = text; return cell; }));
    return row;
  });
  get("found").replaceChildren(...rows);
  get("verdict").textContent = round.failure || found?.verdict?.said || "";
  get("certificate").textContent = found ? `Certificate: ${found.status}${found.gap == null ? "" : `, gap ${Number(found.gap).toPrecision(2)}`}.` : "";
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
stream.addEventListener("history", (event) => { rounds = JSON.parse(event.data); slide(); });
stream.addEventListener("state", async (event) => {
  const state = JSON.parse(event.data);
  get("site").textContent = state.site;
  get("status").textContent = state.store_problem || (state.connected ? "Live." : "The collector has lost its broker.");
  get("promise").textContent = state.last?.recovery?.statement ?? "";
  if (!site) site = await fetch(`/sources/site.json?port=${encodeURIComponent(port)}`).then((r) => (r.ok ? r.json() : null));
  if (state.last && rounds.at(-1)?.time !== state.last.time) rounds = [...rounds, state.last].slice(-200);
  slide();
  document.body.dataset.rounds = String(rounds.length);
});
stream.addEventListener("away", () => { get("status").textContent = `No collector answers at port ${port} of this machine; trying again.`; });
stream.addEventListener("error", () => { get("status").textContent = "This page's server does not answer; trying again."; });

export {};  // a module: its names are its own
