/**
 * @typedef {{ get(name: string): any, set(name: string, value: any): void, save_changes(): void,
 *   on(name: string, call: () => void): void }} Model
 */

/**
 * @param {Model} model
 * @param {string} name
 * @param {[number, number]} range
 * @param {(value: number) => string} told
 */
const slider = (model, name, [low, high], told) => {
  const label = document.createElement("label"), text = document.createElement("span");
  const input = document.createElement("input"), value = document.createElement("output");
  text.textContent = name;
  // In this order: a value is held to the range that there is.
  Object.assign(input, { type: "range", min: Math.log10(low), max: Math.log10(high), step: 0.05 });
  input.value = String(Math.log10(model.get(name)));
  const number = () => 10 ** Number(input.value);
  const tell = () => {
    value.textContent = told(number());
    input.setAttribute("aria-valuetext", value.textContent);
  };
  input.addEventListener("input", tell);
  input.addEventListener("change", () => {
    model.set(name, Number(number().toPrecision(2)));
    model.save_changes();
  });
  tell();
  label.append(text, input, value);
  return label;
};

/** @param {{ model: Model, el: HTMLElement }} given */
const render = ({ model, el }) => {
  // JupyterLab leaves the arrow keys to what has the focus.
  el.addEventListener("focusin", (event) => {
    if (event.target instanceof HTMLElement) event.target.dataset.lmSuppressShortcuts = "true";
  });
  const panel = document.createElement("div"), shown = document.createElement("div");
  panel.className = "sf-plan";
  panel.append(
    slider(model, "epsilon", [0.05, 20], (n) => n.toPrecision(2)),
    slider(model, "users", [1e2, 1e7], (n) => Number(n.toPrecision(2)).toLocaleString("en")));
  shown.setAttribute("aria-live", "polite");
  // The kernel's own words, each of them escaped there.
  const draw = () => { shown.innerHTML = model.get("shown"); };
  model.on("change:shown", draw);
  draw();
  el.append(panel, shown);
};
export default { render };
