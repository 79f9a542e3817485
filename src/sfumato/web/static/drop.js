// @ts-check
// Files go to this server as they are; what it answers is shown as text, never as markup.

import { csrf, told } from "./asking.js";

for (const one of document.querySelectorAll("input[data-upload]")) {
  const input = /** @type {HTMLInputElement} */ (one);
  input.addEventListener("change", () => send(input));
  const card = input.closest("section");
  card?.addEventListener("dragover", (event) => event.preventDefault());
  card?.addEventListener("drop", (event) => {
    const files = /** @type {DragEvent} */ (event).dataTransfer?.files;
    event.preventDefault();
    if (files?.length) {
      input.files = files;
      send(input);
    }
  });
}

/** @param {HTMLInputElement} input */
async function send(input) {
  const said = /** @type {HTMLElement} */ (document.getElementById(`${input.id}-said`));
  const file = input.files?.[0];
  if (!file) return;
  said.textContent = `reading ${file.name} …`;
  try {
    const named = /** @type {HTMLInputElement | null} */ (document.getElementById(input.dataset.field ?? ""));
    const query = named ? `?name=${encodeURIComponent(named.value)}` : "";
    const answer = await fetch((input.dataset.upload ?? "") + query, {
      method: "POST",
      body: file,
      headers: {
        "accept": "application/json",
        "content-type": "application/octet-stream",
        "x-csrf-token": csrf(),
        "x-file-name": encodeURIComponent(file.name),
      },
    });
    const data = await told(answer);
    if (input.dataset.words) {
      said.textContent = Array.isArray(data.words) ? data.words.join("\n") : data.words;
    } else {
      const here = location.pathname;
      location.assign(input.dataset.next ? input.dataset.next + encodeURIComponent(data[input.dataset.answer ?? ""]) : data.address);
      // An address that differs by its # alone loads nothing by itself.
      if (new URL(location.href).pathname === here && data.address?.startsWith(here)) location.reload();
    }
  } catch (problem) {
    said.textContent = String(problem instanceof Error ? problem.message : problem);
  }
}
