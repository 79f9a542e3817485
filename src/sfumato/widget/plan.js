const slider = (model, trait, name, low, high, told) => {
  const label = document.createElement("label"), text = document.createElement("span");
  const input = document.createElement("input"), value = document.createElement("output");
  text.textContent = name;
  Object.assign(input, { type: "range", min: low, max: high, step: 0.05, value: Math.log10(model.get(trait)) });
  const tell = () => { value.textContent = told(10 ** input.value); input.setAttribute("aria-valuetext", value.textContent); };
  input.addEventListener("input", tell);
  input.addEventListener("change", () => { model.set(trait, Number((10 ** input.value).toPrecision(2))); model.save_changes(); });
  tell();
  label.append(text, input, value);
  return label;
};
export default { render({ model, el }) {
  // JupyterLab leaves the arrow keys to what has the focus.
  el.addEventListener("focusin", (event) => { event.target.dataset.lmSuppressShortcuts = "true"; });
  const panel = document.createElement("div"), shown = document.createElement("div");
  panel.className = "sf-plan";
  panel.append(
    slider(model, "epsilon", "epsilon", Math.log10(0.05), Math.log10(20), (n) => n.toPrecision(2)),
    slider(model, "users", "users", 2, 7, (n) => Number(n.toPrecision(2)).toLocaleString("en")));
  shown.setAttribute("aria-live", "polite");
  // The kernel's own words, each of them escaped there.
  const draw = () => { shown.innerHTML = model.get("shown"); };
  model.on("change:shown", draw);
  draw();
  el.append(panel, shown);
} };
