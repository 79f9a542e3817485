"use strict";
// Plays what a page has, one after the other: buttons, slider, bars and keys. `show(i)` draws one of `count`.
const player = ({ count, pace, show }) => {
  const get = (id) => document.getElementById(id), slider = get("slider"), bars = get("bars"), last = count - 1;
  const still = matchMedia("(prefers-reduced-motion: reduce)"), asked = /^#frame=(\d+)$/.exec(location.hash);
  let now = asked ? Math.min(last, Number(asked[1])) : 0, clock = 0;

  const turn = (i) => { now = (i + count) % count; slider.value = String(now); show(now); };
  const pause = () => { clearInterval(clock); clock = 0; get("play").textContent = "Play"; get("period").setAttribute("aria-live", "polite"); };
  const play = () => {
    if (count < 2) return;
    get("period").setAttribute("aria-live", "off");  // nobody wants each of them read out
    get("play").textContent = "Pause";
    clock = setInterval(() => turn(now + 1), still.matches ? 1500 : pace);
  };
  const toggle = () => (clock ? pause() : play());
  const go = (i) => { pause(); turn(i); };
  get("play").addEventListener("click", toggle);
  get("back").addEventListener("click", () => go(now - 1));
  get("next").addEventListener("click", () => go(now + 1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  bars.addEventListener("click", (event) => {
    const box = bars.getBoundingClientRect();
    go(Math.max(0, Math.min(last, Math.floor(((event.clientX - box.left) / box.width) * count))));
  });
  const keys = { ArrowLeft: () => go(now - 1), ArrowRight: () => go(now + 1), Home: () => go(0), End: () => go(last), " ": toggle };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    const at = event.target && event.target.tagName;
    if ((at === "INPUT" && event.key !== " ") || (at === "BUTTON" && event.key === " ") || at === "SUMMARY") return;
    event.preventDefault();
    keys[event.key]();
  });
  return {
    again: () => turn(now),
    // By itself, unless the address names one of them or nothing should move.
    begin: () => { if (!asked && !still.matches) play(); },
  };
};
