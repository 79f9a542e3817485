/** @param {{ model: { get(name: string): any }, el: HTMLElement }} given */
const render = ({ model, el }) => {
  // JupyterLab leaves the arrow keys to what has the focus.
  el.addEventListener("focusin", (event) => {
    if (event.target instanceof HTMLElement) event.target.dataset.lmSuppressShortcuts = "true";
  });
  /** @type {string[]} */
  const rounds = model.get("rounds");
  const shown = document.createElement("div");
  /** @param {number} n */
  const show = (n) => { shown.innerHTML = rounds[n]; };  // made and escaped by the kernel
  if (rounds.length > 1) {
    const label = document.createElement("label"), input = document.createElement("input"), value = document.createElement("output");
    label.textContent = "Round ";
    Object.assign(input, { type: "range", min: 0, max: rounds.length - 1, step: 1 });
    input.value = String(rounds.length - 1);
    const tell = () => {
      value.textContent = `${Number(input.value) + 1} of ${rounds.length}`;
      show(Number(input.value));
    };
    input.addEventListener("input", tell);
    label.append(input, value);
    el.append(label);
    tell();
  } else show(0);
  el.append(shown);
};
export default { render };
