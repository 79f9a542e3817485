import { showMap as showHere } from "../web/static/map/show_map.js";

/** @param {{ model: { get(name: string): any }, el: HTMLElement }} given */
const render = async ({ model, el }) => {
  // JupyterLab leaves the arrow keys to what has the focus.
  el.addEventListener("focusin", (event) => {
    if (event.target instanceof HTMLElement) event.target.dataset.lmSuppressShortcuts = "true";
  });
  const box = document.createElement("div");
  el.append(box);
  const shown = await showHere(box, model.get("view"));
  return () => shown.remove();
};
export default { render };
