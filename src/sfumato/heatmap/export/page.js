"use strict";
// Draws the map of this page on a canvas. Everything it shows is in the page; nothing is fetched.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const view = get("view"), pen = view.getContext("2d");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const levels = bytes(data.tiles.levels);
  const codes = new Uint32Array(bytes(data.tiles.codes).buffer);
  const shares = new Float32Array(bytes(data.tiles.shares).buffer);
  const [lowX, lowY, highX, highY] = data.bounds, [west, south, east, north] = data.grid;
  const down = data.kind === "pixels" ? 1 : -1;  // where y grows on the screen
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let colors, heat, blocks, layer = "smooth", ratio = 1;
  const at = { x: 0, y: 0, zoom: 1 };  // the center in map units, and screen pixels to a unit of x

  // -- colors: `shade` is the rule of the pictures

  const scaleOf = () => data.scales[layer];
  // Over an image, the stronger the shade (0 to 255), the less of it shines through.
  const cover = (s) => (data.under ? Math.min((1.6 * s) / 255, 0.8) : 1);

  const paint = (wide, high, shadeAt) => {
    const sheet = document.createElement("canvas");
    sheet.width = wide; sheet.height = high;
    const brush = sheet.getContext("2d"), pixels = brush.createImageData(wide, high);
    for (let i = 0; i < wide * high; i++) {
      const s = shadeAt(i), c = 3 * s;
      pixels.data.set([colors[c], colors[c + 1], colors[c + 2], 255 * cover(s)], 4 * i);
    }
    brush.putImageData(pixels, 0, 0);
    return sheet;
  };

  const even = (code) => {  // every second bit
    let out = 0;
    for (let k = 0; k < 16; k++) out |= ((code >>> (2 * k)) & 1) << k;
    return out;
  };
  const columns = Uint16Array.from(codes, even), rows = Uint16Array.from(codes, (c) => even(c >>> 1));

  const overview = () => {  // all tiles on the grid of the picture, cut to its window
    const P = data.level, [c0, r0, c1, r1] = data.window, wide = c1 - c0, high = r1 - r0;
    const sums = new Float32Array(wide * high), held = new Float32Array(wide * high);
    for (let i = 0; i < levels.length; i++) {
      const up = P - levels[i], n = up > 0 ? 2 ** up : 1;
      const c = up > 0 ? columns[i] * n : columns[i] >> -up, r = up > 0 ? rows[i] * n : rows[i] >> -up;
      const one = shares[i] / (n * n);
      for (let y = Math.max(r, r0); y < Math.min(r + n, r1); y++)
        for (let x = Math.max(c, c0); x < Math.min(c + n, c1); x++) {
          sums[(y - r0) * wide + x - c0] += one;
          held[(y - r0) * wide + x - c0] += shares[i];  // it is the tile that may be noise, not its parts
        }
    }
    const { top, floor } = data.scales.cells;
    return paint(wide, high, (i) => {
      const y = Math.floor(i / wide), row = down > 0 ? y : high - 1 - y;
      const j = row * wide + (i % wide);
      return Math.round(255 * shade(sums[j], top, floor, held[j]));
    });
  };

  const recolor = () => {
    colors = bytes(data.palettes[dark.matches ? "dark" : "light"]);
    blocks = overview();
    const wide = picture.naturalWidth, high = picture.naturalHeight;
    const sheet = document.createElement("canvas");
    sheet.width = wide; sheet.height = high;
    const brush = sheet.getContext("2d", { willReadFrequently: true });
    brush.drawImage(picture, 0, 0);
    const grey = brush.getImageData(0, 0, wide, high).data;
    heat = paint(wide, high, (i) => grey[4 * i]);
    legend();
    draw();
  };

  // -- the map

  const toX = (x) => (x - at.x) * at.zoom + view.clientWidth / 2;
  const toY = (y) => down * (y - at.y) * at.zoom * data.stretch + view.clientHeight / 2;
  const fromX = (px) => (px - view.clientWidth / 2) / at.zoom + at.x;
  const fromY = (py) => (down * (py - view.clientHeight / 2)) / (at.zoom * data.stretch) + at.y;
  const least = () => 0.94 * Math.min(
    view.clientWidth / (highX - lowX), view.clientHeight / ((highY - lowY) * data.stretch));
  const most = () => 48 * 2 ** data.levels / (east - west);

  const clamp = () => {
    at.zoom = Math.min(Math.max(at.zoom, least()), Math.max(most(), least()));
    at.x = Math.min(Math.max(at.x, lowX), highX);
    at.y = Math.min(Math.max(at.y, lowY), highY);
  };
  const home = () => { at.x = (lowX + highX) / 2; at.y = (lowY + highY) / 2; at.zoom = least(); draw(); };
  const zoomAt = (factor, px, py) => {
    const x = fromX(px), y = fromY(py);
    at.zoom *= factor; clamp();
    at.x += x - fromX(px); at.y += y - fromY(py);
    draw();
  };
  const move = (dx, dy) => { at.x -= dx / at.zoom; at.y -= (down * dy) / (at.zoom * data.stretch); draw(); };

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let waiting = false;
  const draw = () => {
    clamp();
    scaleBar();
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; frame(); });
  };

  const frame = () => {
    if (!heat) return;
    ratio = window.devicePixelRatio || 1;
    view.width = Math.round(view.clientWidth * ratio);
    view.height = Math.round(view.clientHeight * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = style("--paper");
    pen.fillRect(0, 0, view.clientWidth, view.clientHeight);
    pen.save();
    const left = toX(lowX), right = toX(highX), top = toY(down > 0 ? lowY : highY), bottom = toY(down > 0 ? highY : lowY);
    pen.beginPath(); pen.rect(left, top, right - left, bottom - top); pen.clip();
    const [x0, y0, x1, y1] = data.extent;
    const place = [toX(x0), toY(down > 0 ? y0 : y1), (x1 - x0) * at.zoom, (y1 - y0) * at.zoom * data.stretch];
    pen.imageSmoothingEnabled = layer === "smooth" || place[2] < blocks.width * ratio;
    pen.imageSmoothingQuality = "high";
    if (data.under) pen.drawImage(under, left, top, right - left, bottom - top);
    pen.drawImage(layer === "smooth" ? heat : blocks, ...place);
    if (layer === "cells") finest();
    if (lines.length) outline();
    if (doubt && doubting) { hatch(); rings(false); }
    graticule(left, right, top, bottom);
    pen.restore();
    pen.strokeStyle = style("--line"); pen.lineWidth = 1;
    pen.strokeRect(left, top, right - left, bottom - top);
    if (doubt && doubting) rings(true);
  };

  const finest = () => {  // tiles smaller than a cell of the overview, once they can be seen
    const wide = (east - west) * at.zoom, high = (north - south) * at.zoom * data.stretch;
    if (wide / 2 ** data.level < 3) return;
    const { top, floor } = data.scales.cells;
    for (let i = 0; i < levels.length; i++) {
      if (levels[i] <= data.level) continue;
      const side = 2 ** levels[i], x = toX(west + (columns[i] / side) * (east - west));
      const y = toY(south + ((rows[i] + (down > 0 ? 0 : 1)) / side) * (north - south));
      const w = wide / side, h = high / side;
      if (x + w < 0 || y + h < 0 || x > view.clientWidth || y > view.clientHeight) continue;
      const value = shares[i] * 4 ** (levels[i] - data.level);
      const s = Math.round(255 * shade(value, top, floor, shares[i])), c = 3 * s;
      pen.fillStyle = `rgba(${colors[c]},${colors[c + 1]},${colors[c + 2]},${cover(s)})`;
      pen.fillRect(x, y, Math.max(w, 0.5), Math.max(h, 0.5));
    }
  };

  // -- lines of the ground, as parts of the bounds

  const lines = [];
  if (data.outline) {
    const positions = new Uint16Array(bytes(data.outline.positions).buffer), parts = Number(data.outline.parts);
    let first = 0;
    for (const count of new Uint32Array(bytes(data.outline.counts).buffer)) {
      lines.push(Array.from({ length: count }, (_, k) => [
        lowX + (positions[2 * (first + k)] / parts) * (highX - lowX), lowY + (positions[2 * (first + k) + 1] / parts) * (highY - lowY)]));
      first += count;
    }
  }
  const outline = () => {
    pen.beginPath();
    for (const line of lines) line.forEach(([x, y], k) => (k ? pen.lineTo(toX(x), toY(y)) : pen.moveTo(toX(x), toY(y))));
    pen.lineJoin = "round";
    pen.globalAlpha = 0.6; pen.lineWidth = 2.6;  // a light edge: lines show on dark ground too
    pen.strokeStyle = data.under ? "#ffffff" : style("--paper");
    pen.stroke();
    pen.globalAlpha = 0.75; pen.lineWidth = 1;
    pen.strokeStyle = data.under ? "#1f2328" : style("--ink");
    pen.stroke();
    pen.globalAlpha = 1;
  };

  // -- uncertainty: a hatch where the map says nothing, rings around places that are real

  const doubt = data.uncertainty;
  let doubting = Boolean(doubt), mute = null;
  const hatching = document.createElement("canvas"), floats = (text) => new Float32Array(bytes(text).buffer);
  const band = doubt && [doubt.low, doubt.middle, doubt.high].map(floats), silent = doubt && bytes(doubt.silent);
  const hush = (j) => (silent[j >> 3] >> (7 - (j & 7))) & 1;
  const silence = () => {  // the silent cells as a mask, row 0 at the top of the screen
    const [c0, r0, c1, r1] = doubt.silentWindow, wide = c1 - c0, high = r1 - r0;
    mute = document.createElement("canvas");
    mute.width = wide; mute.height = high;
    const brush = mute.getContext("2d"), pixels = brush.createImageData(wide, high);
    for (let i = 0; i < wide * high; i++) {
      const y = Math.floor(i / wide);
      pixels.data[4 * i + 3] = 255 * hush((down > 0 ? y : high - 1 - y) * wide + (i % wide));
    }
    brush.putImageData(pixels, 0, 0);
  };

  const hatch = () => {
    if (!mute) silence();
    const wide = view.clientWidth, high = view.clientHeight, [x0, y0, x1, y1] = doubt.extent;
    hatching.width = view.width; hatching.height = view.height;
    const brush = hatching.getContext("2d");
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.strokeStyle = style("--grey"); brush.globalAlpha = 0.6; brush.lineWidth = 0.8;
    brush.beginPath();
    for (let x = -high; x < wide; x += 10) { brush.moveTo(x, high); brush.lineTo(x + high, 0); }
    brush.stroke();
    brush.globalAlpha = 1; brush.globalCompositeOperation = "destination-in";
    brush.drawImage(mute, toX(x0), toY(down > 0 ? y0 : y1), (x1 - x0) * at.zoom, (y1 - y0) * at.zoom * data.stretch);
    pen.drawImage(hatching, 0, 0, wide, high);
  };

  const rings = (labels) => {  // labels are not cut at the edge of the map
    pen.font = '600 11.5px system-ui, "DejaVu Sans", sans-serif';
    pen.textAlign = "center"; pen.lineJoin = "round";
    if (!labels) pen.setLineDash([3, 4]);
    for (const [mx, my] of labels ? [] : doubt.untested) {
      pen.strokeStyle = style("--ink"); pen.lineWidth = 1;
      pen.beginPath(); pen.ellipse(toX(mx), toY(my), doubt.reach[0] * at.zoom, doubt.reach[1] * at.zoom * data.stretch, 0, 0, 2 * Math.PI);
      pen.stroke();
    }
    pen.setLineDash([]);
    for (const mark of doubt.marks) {
      const x = toX(mark.x), y = toY(mark.y), wide = doubt.reach[0] * at.zoom, high = doubt.reach[1] * at.zoom * data.stretch;
      if (x < 0 || y < 0 || x > view.clientWidth || y > view.clientHeight) continue;
      const said = wide < 80 ? percent(mark.share) : `${percent(mark.share)} (${between(mark.low, mark.high)})`;
      const below = y + high + 15 < view.clientHeight ? y + high + 13 : y - high - 5;
      for (const [color, line] of [["--paper", 4], ["--ink", 1.5]]) {
        pen.strokeStyle = pen.fillStyle = style(color); pen.lineWidth = line;
        pen.beginPath(); pen.ellipse(x, y, wide, high, 0, 0, 2 * Math.PI);
        if (!labels) pen.stroke(); else if (line > 2) pen.strokeText(said, x, below); else pen.fillText(said, x, below);
      }
    }
    pen.textAlign = "start";
  };

  const doubtful = (x, y) => {  // what the readout says of the blurred map at a place
    if (!doubt || !doubting) return "";
    const find = (level, [c0, r0, c1, r1]) => {
      const side = 2 ** level, held = (value, low, high) => Math.min(Math.max(Math.floor(value * side), low), high - 1) - low;
      return held((y - south) / (north - south), r0, r1) * (c1 - c0) + held((x - west) / (east - west), c0, c1);
    };
    const [low, middle, high] = band.map((end) => end[find(doubt.bandLevel, doubt.bandWindow)]);
    const sure = `${Number((100 * doubt.coverage).toPrecision(3))}%`;
    const ring = doubt.marks.find((mark) => Math.hypot((x - mark.x) / doubt.reach[0], (y - mark.y) / doubt.reach[1]) <= 1);
    const around = ring ? ` In this ring: ${percent(ring.share)} (${sure}: ${between(ring.low, ring.high)}).` : "";
    const nothing = hush(find(doubt.level, doubt.silentWindow)) ? " The map says nothing here." : "";
    return ` Smoothed share of a cell of ${doubt.cell}: ${percent(middle)} (${sure}: ${between(low, high)}).${around}${nothing}`;
  };

  const nice = (value) => {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 5, 10].map((k) => k * power).find((k) => k >= value * (1 - 1e-9));
  };
  const degrees = (value, letters, digits) => {
    const around = letters === "EW" ? ((((value + 180) % 360) + 360) % 360) - 180 : value;
    const text = Math.abs(around).toFixed(digits);
    return Number(text) === 0 ? "0°" : `${text}°${letters[around > 0 ? 0 : 1]}`;
  };
  const digitsOf = (step) => Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));

  const graticule = (left, right, top, bottom) => {
    if (data.kind !== "degrees") return;
    const step = nice(100 / at.zoom), digits = digitsOf(step);
    pen.strokeStyle = dark.matches ? "#ffffff22" : "#30405022"; pen.lineWidth = 1;
    pen.font = '11px system-ui, "DejaVu Sans", sans-serif';
    pen.lineJoin = "round";
    const label = (text, x, y) => {
      pen.lineWidth = 3; pen.strokeStyle = style("--paper"); pen.strokeText(text, x, y);
      pen.fillStyle = style("--grey"); pen.fillText(text, x, y);
      pen.lineWidth = 1; pen.strokeStyle = dark.matches ? "#ffffff22" : "#30405022";
    };
    const lines = (low, high, put) => {
      for (let k = Math.ceil(low / step); k <= Math.floor(high / step); k++) put(k * step);
    };
    const x0 = Math.max(left, 0), x1 = Math.min(right, view.clientWidth), y0 = Math.max(top, 0), y1 = Math.min(bottom, view.clientHeight);
    const stroke = (a, b, c, d) => { pen.beginPath(); pen.moveTo(a, b); pen.lineTo(c, d); pen.stroke(); };
    lines(Math.max(fromX(0), lowX), Math.min(fromX(view.clientWidth), highX), (x) => stroke(toX(x), y0, toX(x), y1));
    lines(Math.max(fromY(view.clientHeight), lowY), Math.min(fromY(0), highY), (y) => stroke(x0, toY(y), x1, toY(y)));
    lines(Math.max(fromX(0), lowX), Math.min(fromX(view.clientWidth), highX), (x) => label(degrees(x, "EW", digits), toX(x) + 4, y1 - 6));
    lines(Math.max(fromY(view.clientHeight), lowY), Math.min(fromY(0), highY), (y) => {
      if (toY(y) < y1 - 24 && toY(y) > y0 + 60) label(degrees(y, "NS", digits), x0 + 6, toY(y) - 4);
    });
  };

  const scaleBar = () => {
    const bar = get("scale");
    if (!data.meter) { bar.hidden = true; return; }
    const length = nice(((60 / at.zoom) * data.meter));
    bar.style.width = `${(length / data.meter) * at.zoom}px`;
    bar.firstElementChild.textContent = length >= 1000 ? `${length / 1000} km` : `${Number(length.toPrecision(3))} m`;
  };

  // -- legend and readout

  const percent = (share) => {
    if (share === 0) return "0";
    const digits = Math.max(0, 2 - Math.floor(Math.log10(100 * share)));
    return `${Number((100 * share).toFixed(Math.min(digits, 20))).toLocaleString("en", { maximumSignificantDigits: 3 })}%`;
  };

  const amount = (value) => `${many(value)} ${many(value) === "1" ? data.unit : data.units}`;
  const many = (value) => value >= 999500 ? `${many(value / 1e6)}M` : Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
  const between = (low, high) => `${percent(low).replace("%", "")} – ${percent(high)}`;

  const legend = () => {
    const { top, floor } = scaleOf(), strip = get("strip"), brush = strip.getContext("2d");
    brush.fillStyle = "#c8c8c8";
    brush.fillRect(0, 0, 512, 1);
    for (let i = 0; i < 512; i++) {
      const s = Math.round(255 * shade(top * (i / 511) ** 2, top, floor)), c = 3 * s;
      brush.fillStyle = `rgba(${colors[c]},${colors[c + 1]},${colors[c + 2]},${cover(s)})`;
      brush.fillRect(i, 0, 1, 1);
    }
    const line = Math.min(511, Math.round(511 * Math.sqrt(Math.min(floor / top, 1))));
    brush.fillStyle = style("--ink");
    brush.fillRect(line, 0, 2, 1);
    get("unit").textContent = layer === "smooth" ? `smoothed ${data.legend}` : data.legend;
    get("marks").replaceChildren(...[0, 0.05, 0.25, 0.5, 1].map((part) => {
      const mark = document.createElement("li");
      mark.textContent = data.amount === null ? percent(part * top) : many(part * top * data.amount);
      mark.style.left = `${100 * Math.sqrt(part)}%`;
      return mark;
    }));
  };

  const found = new Map();
  levels.forEach((level, i) => found.set(level * 2 ** 33 + codes[i], i));
  const spread = (number) => {
    let out = 0;
    for (let k = 0; k < 16; k++) if ((number >>> k) & 1) out += 4 ** k;
    return out;
  };
  const tileAt = (x, y) => {
    for (let level = 0; level <= data.levels; level++) {
      const side = 2 ** level;
      const column = Math.floor(((x - west) / (east - west)) * side), row = Math.floor(((y - south) / (north - south)) * side);
      const i = found.get(level * 2 ** 33 + spread(column) + 2 * spread(row));
      if (i !== undefined) return i;
    }
    return -1;
  };
  const length = (value) => (data.meter === null ? `${Number(value.toPrecision(3))}`
    : value >= 10000 ? `${Number((value / 1000).toPrecision(3))} km` : `${Number(value.toPrecision(3))} m`);

  const read = (px, py) => {
    const x = fromX(px), y = fromY(py);
    if (!(x >= lowX && x <= highX && y >= lowY && y <= highY)) return;
    const digits = Math.min(6, digitsOf(1 / at.zoom));
    const place = data.kind === "degrees"
      ? `${degrees(y, "NS", digits)}, ${degrees(x, "EW", digits)}` : `x ${x.toFixed(1)}, y ${y.toFixed(1)}`;
    const i = tileAt(x, y);
    if (i < 0) { get("readout").textContent = `${place}: no mass was released here.${doubtful(x, y)}`; return; }
    const side = 2 ** levels[i], unit = data.meter === null ? 1 : data.meter;
    const size = `${length(((east - west) / side) * unit)} × ${length(((north - south) / side) * unit * data.stretch)}`;
    const noise = shares[i] < data.noise ? ", which may be noise" : "";
    get("readout").textContent = `${place}: about ${amount(shares[i] * data.total)} (${percent(shares[i])}) in this cell of ${size}${layer === "smooth" ? ", before smoothing" : ""}${noise}.${doubtful(x, y)}`;
  };

  // -- hands and keys

  const held = new Map();
  const spot = (event) => { const box = view.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  view.addEventListener("pointerdown", (event) => {
    view.setPointerCapture(event.pointerId);
    held.set(event.pointerId, spot(event));
    view.classList.add("held");
  });
  view.addEventListener("pointermove", (event) => {
    const now = spot(event), before = held.get(event.pointerId);
    if (!before) { read(...now); return; }
    if (held.size === 2) {
      const other = [...held].find(([id]) => id !== event.pointerId)[1];
      const span = (p) => Math.max(Math.hypot(p[0] - other[0], p[1] - other[1]), 1);
      move((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
      zoomAt(span(now) / span(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    } else move(now[0] - before[0], now[1] - before[1]);
    held.set(event.pointerId, now);
  });
  for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, (event) => {
    held.delete(event.pointerId);
    if (!held.size) view.classList.remove("held");
    if (event.type === "pointerup") read(...spot(event));
  });
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoomAt(Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) / 400), ...spot(event));
  }, { passive: false });
  view.addEventListener("dblclick", (event) => zoomAt(2, ...spot(event)));
  const middle = () => [view.clientWidth / 2, view.clientHeight / 2];
  const keys = {
    ArrowLeft: () => move(60, 0), ArrowRight: () => move(-60, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60),
    "+": () => zoomAt(1.5, ...middle()), "=": () => zoomAt(1.5, ...middle()), "-": () => zoomAt(1 / 1.5, ...middle()),
    "0": home, s: () => show("smooth"), c: () => show("cells"), u: () => { if (doubt) doubts(!doubting); },
  };
  view.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
    clamp();
    read(...middle());
  });
  const show = (name) => {
    layer = name;
    for (const id of ["smooth", "cells"]) get(id).setAttribute("aria-pressed", String(id === name));
    legend();
    draw();
  };
  const doubts = (shown) => {
    doubting = shown;
    get("doubt").setAttribute("aria-pressed", String(shown));
    for (const id of ["hatched", "ringed"]) get(id).hidden = !shown;
    draw();
  };
  if (doubt) {
    get("doubt").hidden = false;
    for (const id of ["hatched", "ringed"]) get(id).textContent = doubt[id];
    get("doubt").addEventListener("click", () => doubts(!doubting));
  }
  get("in").addEventListener("click", () => zoomAt(1.5, ...middle()));
  get("out").addEventListener("click", () => zoomAt(1 / 1.5, ...middle()));
  get("home").addEventListener("click", home);
  get("smooth").addEventListener("click", () => show("smooth"));
  get("cells").addEventListener("click", () => show("cells"));
  dark.addEventListener("change", recolor);
  let seen = 0;
  new ResizeObserver(() => {  // the whole map stays in sight when the page turns
    const whole = at.zoom <= seen * 1.001;
    seen = least();
    if (whole) home(); else draw();
  }).observe(view);

  const under = new Image();
  const picture = new Image();
  picture.addEventListener("load", () => { seen = least(); home(); recolor(); if (location.hash === "#layer=cells") show("cells"); });
  under.addEventListener("load", () => { picture.src = data.picture; });
  if (data.under) under.src = data.under; else picture.src = data.picture;
})();
