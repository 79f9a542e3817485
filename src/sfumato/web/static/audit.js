// @ts-check
// The wealth of a bet, pushed as it goes; it draws what it is told.

const svg = /** @type {SVGSVGElement | null} */ (/** @type {unknown} */ (document.getElementById("wealth")));
const said = document.getElementById("said");
const WIDE = 640, HIGH = 260, LEFT = 56, LOW = 30;

/** @typedef {{runs: number, wealth: number, target: number, said: string}} Look */
/** @type {Look[]} */
let looks = [];
let quiet = 0;

/** @param {string} tag @param {Record<string, string | number>} attributes @param {string} [text] */
const draw = (tag, attributes, text = "") => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.textContent = text;
  svg?.append(made);
};

const show = () => {
  if (!svg || !looks.length) return;
  svg.textContent = "";
  const last = looks[looks.length - 1], target = Math.log10(last.target);
  const logs = looks.map((one) => Math.log10(Math.max(one.wealth, 1e-300)));
  const top = Math.min(Math.max(target + 0.5, ...logs), target + 6), bottom = Math.max(Math.min(-1, ...logs), -6);
  const x = (/** @type {number} */ runs) => LEFT + ((WIDE - LEFT - 10) * runs) / Math.max(last.runs, 1);
  const y = (/** @type {number} */ log) => 10 + ((HIGH - LOW - 10) * (top - Math.min(top, Math.max(bottom, log)))) / (top - bottom);
  draw("line", { x1: LEFT, x2: WIDE - 10, y1: y(target), y2: y(target), class: "target" });
  draw("text", { x: LEFT + 6, y: y(target) - 5 }, `refuted at ${last.target.toPrecision(3)}`);
  draw("line", { x1: LEFT, x2: WIDE - 10, y1: y(0), y2: y(0), class: "axis" });
  for (let log = Math.ceil(bottom); log <= top; log++) draw("text", { x: LEFT - 6, y: y(log) + 4, class: "end" }, String(10 ** log));
  draw("text", { x: LEFT, y: HIGH - 8 }, "0 runs");
  draw("text", { x: WIDE - 10, y: HIGH - 8, class: "end" }, `${last.runs.toLocaleString("en")} runs`);
  draw("polyline", { points: [`${LEFT},${y(0)}`, ...looks.map((one, n) => `${x(one.runs)},${y(logs[n])}`)].join(" "), class: "path" });
};

if (svg) {
  const stream = new EventSource("/audit/events");
  stream.addEventListener("history", (event) => { ({ looks } = JSON.parse(event.data)); show(); });
  stream.addEventListener("look", (event) => {
    looks = [...looks, JSON.parse(event.data)].slice(-2000);
    if (said && Date.now() > quiet) {  // readers of a screen are told now and then
      said.textContent = looks[looks.length - 1].said;
      quiet = Date.now() + 3000;
    }
    show();
  });
  stream.addEventListener("said", (event) => { if (said) said.textContent = JSON.parse(event.data).said; });
  stream.addEventListener("end", () => {
    stream.close();
    if (svg.dataset.going) location.reload();  // the verdict is on the page
  });
}

export {};  // a module: its names are its own
