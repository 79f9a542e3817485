// Plays the rounds of this page. Everything it shows is in the page; nothing is fetched.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const view = get("view"), bars = get("bars"), pen = view.getContext("2d");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const count = data.rounds.length, last = count - 1;
  const palettes = { masses: bytes(data.palettes.masses), readings: bytes(data.palettes.readings) };
  const [lowX, lowY, highX, highY] = data.box, [least, most] = data.span;
  const under = new Image();
  let now = 0;

  const color = (name, part) => {
    const c = 3 * Math.round(255 * Math.max(0, Math.min(1, part))), p = palettes[name];
    return `rgb(${p[c]},${p[c + 1]},${p[c + 2]})`;
  };
  const short = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const percent = (p) => (p >= 0.995 ? ">99 %" : `${Math.floor(100 * p + 1e-9)} %`);
  const amber = (alpha) => data.sure + alpha;

  // -- a place on the canvas: a plan, or on a line without one a chart of masses over positions

  const chart = data.kind === "line" && !data.image && !data.lines.length;
  const WIDE = 1000, FOOT = 46, SIDE = 60, TOP = 22, READ = 130;
  const ratio = 2;  // pixels to a point: sharp on most screens, and the same everywhere
  const shape = (highY - lowY) / (highX - lowX);
  const HIGH = chart ? 430 : Math.max(160, Math.min(760, Math.round(WIDE * shape)));
  const scale = Math.min(WIDE / (highX - lowX), HIGH / (highY - lowY));
  const toX = chart
    ? (x) => SIDE + ((x - lowX) / (highX - lowX)) * (WIDE - SIDE - 14)
    : (x) => WIDE / 2 + (x - (lowX + highX) / 2) * scale;
  const toY = (y) => HIGH / 2 - (y - (lowY + highY) / 2) * scale;

  const label = (words, x, y, align = "center") => {
    pen.font = "12px system-ui, sans-serif";
    pen.textAlign = align;
    pen.lineJoin = "round";
    pen.strokeStyle = style("--paper"); pen.lineWidth = 3.5; pen.strokeText(words, x, y);
    pen.fillStyle = style("--ink"); pen.fillText(words, x, y);
  };
  const dot = (x, y, radius, fill, edge, width = 1) => {
    pen.beginPath(); pen.arc(x, y, radius, 0, 7);
    if (fill) { pen.fillStyle = fill; pen.fill(); }
    if (edge) { pen.strokeStyle = edge; pen.lineWidth = width; pen.stroke(); }
  };
  const ticks = (low, high) => {
    const raw = (high - low) / 8, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= raw);
    const out = [];
    for (let t = Math.ceil(low / step) * step; t <= high + 1e-9 * step; t += step) out.push(Number(t.toPrecision(10)));
    return out;
  };

  // -- names of sensors, where they have room, the same in all rounds

  const spots = [];
  const names = () => {
    const taken = [];
    pen.font = "10.5px system-ui, sans-serif";
    data.sensors.forEach(([x, y], i) => {
      const words = data.sensorNames[i], px = toX(x), py = chart ? HIGH - FOOT + 14 : toY(y);
      const wide = pen.measureText(words).width;
      const box = chart ? [px - wide / 2, py - 6, px + wide / 2, py + 6] : [px + 7, py - 14, px + 7 + wide, py - 3];
      if (box[2] > WIDE || taken.some((o) => box[0] < o[2] + 3 && o[0] < box[2] + 3 && box[1] < o[3] + 1 && o[1] < box[3] + 1)) return;
      taken.push(box);
      spots.push([words, box[0], box[3]]);
    });
  };
  const drawNames = () => {
    pen.font = "10.5px system-ui, sans-serif"; pen.textAlign = "left";
    for (const [words, x, y] of spots) {
      pen.strokeStyle = style("--paper"); pen.lineWidth = 3; pen.strokeText(words, x, y);
      pen.fillStyle = style("--grey"); pen.fillText(words, x, y);
    }
  };

  // -- on a plan

  const ground = () => {
    if (data.image && under.complete) {
      const [a, b, c, d] = data.image.bounds;
      pen.globalAlpha = 0.85;
      pen.drawImage(under, toX(a), toY(d), toX(c) - toX(a), toY(b) - toY(d));
      pen.globalAlpha = 1;
    }
    pen.lineJoin = "round";
    for (const line of data.lines) {
      pen.beginPath();
      line.forEach(([x, y], k) => (k ? pen.lineTo(toX(x), toY(y)) : pen.moveTo(toX(x), toY(y))));
      pen.strokeStyle = style("--ink"); pen.globalAlpha = 0.75; pen.lineWidth = 1.4; pen.stroke(); pen.globalAlpha = 1;
    }
    if (data.edges) {
      pen.beginPath();
      for (const [u, v] of data.edges) {
        pen.moveTo(toX(data.cells[u][0]), toY(data.cells[u][1]));
        pen.lineTo(toX(data.cells[v][0]), toY(data.cells[v][1]));
      }
      pen.strokeStyle = style("--grey"); pen.globalAlpha = 0.45; pen.lineWidth = 1; pen.stroke(); pen.globalAlpha = 1;
    }
    if (data.kind === "line") {
      pen.beginPath(); pen.moveTo(toX(data.cells[0][0]), toY(0)); pen.lineTo(toX(data.cells[data.cells.length - 1][0]), toY(0));
      pen.strokeStyle = style("--grey"); pen.lineWidth = 1; pen.stroke();
    }
    if (data.size[0] && data.kind === "plane") {
      const xs = data.cells.map((c) => c[0]), ys = data.cells.map((c) => c[1]), [w, h] = data.size;
      const a = Math.min(...xs) - w / 2, b = Math.max(...xs) + w / 2, c = Math.min(...ys) - h / 2, d = Math.max(...ys) + h / 2;
      pen.strokeStyle = style("--line"); pen.lineWidth = 1; pen.strokeRect(toX(a), toY(d), toX(b) - toX(a), toY(c) - toY(d));
    }
  };
  const outlineOf = ([x, y, radius]) => {
    const path = new Path2D(), r = Math.max(radius * scale, 9), px = toX(x), py = toY(y);
    if (data.kind === "line") path.rect(px - r, py - 14, 2 * r, 28);
    else if (data.norm === "l1") { path.moveTo(px + r, py); path.lineTo(px, py - r); path.lineTo(px - r, py); path.lineTo(px, py + r); path.closePath(); }
    else path.arc(px, py, r, 0, 7);
    return path;
  };
  const drawBands = (one) => {
    const all = new Path2D();
    for (const band of one.bands) {
      if (data.kind === "graph") { for (const node of band[4]) { const p = new Path2D(); p.arc(toX(data.cells[node][0]), toY(data.cells[node][1]), 15, 0, 7); all.addPath(p); } }
      else all.addPath(outlineOf(band));
    }
    pen.fillStyle = amber("4d"); pen.fill(all, "nonzero");  // where bands overlap it is no darker
    if (data.kind !== "graph") for (const band of one.bands) { pen.strokeStyle = data.sure; pen.lineWidth = 1.6; pen.stroke(outlineOf(band)); }
  };
  const plan = (one) => {
    ground();
    const squares = data.size[0] && data.kind === "plane";
    if (!squares) drawBands(one);
    const [w, h] = data.size.map((s) => s * scale);
    one.cells.forEach((cell, k) => {
      const [x, y] = data.cells[cell], part = one.masses[k] / data.top;
      pen.fillStyle = color("masses", part);
      if (squares) { pen.globalAlpha = data.image ? 0.8 : 1; pen.fillRect(toX(x) - w / 2, toY(y) - h / 2, w, h); pen.globalAlpha = 1; }
      else dot(toX(x), toY(y), 4 + 14 * Math.sqrt(part), color("masses", part), "#ffffffb0");
    });
    if (squares) drawBands(one);
    data.sensors.forEach(([x, y], i) => {
      const value = one.readings[i];
      dot(toX(x), toY(y), data.sensors.length > 200 ? 2.5 : 4.2, value === null ? null : color("readings", (value - least) / (most - least)), value === null ? "#b3261e" : "#3c4043");
    });
    drawNames();
    for (const band of one.bands) label(percent(band[3]), toX(band[0]), toY(band[1]) - (data.kind === "line" ? 18 : Math.max(band[2] * (data.kind === "graph" ? 0 : scale), 9) + 5));
  };

  // -- a chart of a line: masses above, readings below

  const lines = (one) => {
    const floor = HIGH - FOOT - READ - 26, tall = floor - TOP, bottom = HIGH - FOOT, axis = (y) => {
      pen.beginPath(); pen.moveTo(SIDE, y + 0.5); pen.lineTo(WIDE - 14, y + 0.5); pen.strokeStyle = style("--line"); pen.lineWidth = 1; pen.stroke();
    };
    const all = new Path2D(), spans = one.bands.map(([x, , radius]) => {
      const half = Math.max(toX(x + radius) - toX(x), 5), span = new Path2D();
      span.rect(toX(x) - half, TOP, 2 * half, floor - TOP);
      all.addPath(span);
      return span;
    });
    pen.fillStyle = amber("4d"); pen.fill(all, "nonzero");
    pen.strokeStyle = data.sure; pen.lineWidth = 1.4;
    for (const span of spans) pen.stroke(span);
    axis(floor); axis(bottom);
    pen.strokeStyle = data.found; pen.lineWidth = 2.4;
    one.cells.forEach((cell, k) => {
      const x = toX(data.cells[cell][0]), y = floor - (one.masses[k] / data.top) * tall;
      pen.beginPath(); pen.moveTo(x, floor); pen.lineTo(x, y); pen.stroke();
      if (one.cells.length < 50) dot(x, y, 4, data.found);
    });
    const rise = (value) => bottom - 8 - ((value - least) / (most - least)) * (READ - 16);
    data.sensors.forEach(([x], i) => {
      const value = one.readings[i];
      if (value === null) { pen.font = "600 13px system-ui, sans-serif"; pen.textAlign = "center"; pen.fillStyle = "#b3261e"; pen.fillText("×", toX(x), bottom - 3); return; }
      dot(toX(x), rise(value), 4, color("readings", (value - least) / (most - least)), "#3c4043");
    });
    pen.font = "12px system-ui, sans-serif"; pen.fillStyle = style("--grey");
    pen.textAlign = "right";
    for (const part of [0, 0.5, 1]) pen.fillText(short(part * data.top), SIDE - 8, floor - part * tall + 4);
    for (const value of [least, most]) pen.fillText(short(value), SIDE - 8, rise(value) + 4);
    pen.textAlign = "center";
    for (const tick of ticks(lowX, highX)) pen.fillText(short(tick), toX(tick), HIGH - 4);
    pen.textAlign = "left";
    pen.fillText("mass", SIDE + 4, 12); pen.fillText("noisy readings", SIDE + 4, bottom - READ - 2);
    pen.fillText("sensor", 4, HIGH - FOOT + 18); pen.fillText("position", 4, HIGH - 4);
    drawNames();
    one.bands.forEach((b, k) => label(percent(b[3]), toX(b[0]) + 8, TOP + 14 + 15 * (k % 4), "left"));
  };

  const draw = () => {
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = style("--paper");
    pen.fillRect(0, 0, WIDE, HIGH);
    const one = data.rounds[now];
    (chart ? lines : plan)(one);
    if (!one.told) {
      pen.font = "600 15px system-ui, sans-serif"; pen.textAlign = "center";
      pen.strokeStyle = style("--paper"); pen.lineWidth = 5; pen.strokeText(one.words, WIDE / 2, 24);
      pen.fillStyle = "#b3261e"; pen.fillText(one.words, WIDE / 2, 24);
    }
  };

  // -- mass of every round

  const largest = Math.max(...data.rounds.map((one) => one.total), 1e-9);
  const drawBars = () => {
    const sharp = window.devicePixelRatio || 1, width = bars.clientWidth, height = bars.clientHeight;
    bars.width = width * sharp; bars.height = height * sharp;
    const ink = bars.getContext("2d");
    ink.scale(sharp, sharp);
    const foot = height - 18, step = width / count, gap = Math.min(3, step / 4);
    data.rounds.forEach((one, i) => {
      const tall = one.told ? (one.total / largest) * (foot - 16) : 3;
      ink.fillStyle = i === now ? "#b5367a" : one.told ? data.found : style("--grey");
      ink.globalAlpha = i === now ? 1 : one.told ? 0.7 : 0.35;
      ink.fillRect(i * step + gap / 2, foot - tall, Math.max(step - gap, 0.7), Math.max(tall, 1));
    });
    ink.globalAlpha = 1;
    const x = (now + 0.5) * step;
    ink.fillStyle = "#b5367a";
    ink.beginPath(); ink.moveTo(x, foot + 2); ink.lineTo(x - 5, foot + 10); ink.lineTo(x + 5, foot + 10); ink.fill();
    ink.fillStyle = style("--grey"); ink.font = "12px system-ui, sans-serif"; ink.textBaseline = "bottom";
    if (x > 130) { ink.textAlign = "left"; ink.fillText(data.rounds[0].name, 0, height); }
    if (x < width - 130 && count > 1) { ink.textAlign = "right"; ink.fillText(data.rounds[last].name, width, height); }
    ink.textAlign = "left";
    ink.fillText(`total mass, up to ${short(largest)}`, 0, 13);
  };

  const legend = () => {
    for (const [id, name, low, high] of [["masses", "masses", 0, data.top], ["readings", "readings", least, most]]) {
      const pencil = get(id).getContext("2d");
      for (let i = 0; i < 256; i++) { pencil.fillStyle = color(name, i / 255); pencil.fillRect(i, 0, 1, 1); }
      get(name === "masses" ? "mass-marks" : "reading-marks").replaceChildren(...[0, 0.5, 1].map((part) => {
        const mark = document.createElement("li");
        mark.textContent = short(low + part * (high - low));
        return mark;
      }));
    }
  };

  // -- one of them, and all in turn

  const show = (i) => {
    now = i;
    const one = data.rounds[now];
    get("slider").setAttribute("aria-valuetext", one.name);
    get("period").textContent = one.name;
    get("words").textContent = one.words;
    document.title = `${one.name} · ${data.title}`;
    draw();
    drawBars();
  };
  const played = player({ count, pace: data.pace, show });
  view.addEventListener("mousemove", (event) => {
    const box = view.getBoundingClientRect(), part = WIDE / box.width;
    const x = (event.clientX - box.left) * part, y = (event.clientY - box.top) * part;
    let best = -1, near = 400;
    data.sensors.forEach(([sx, sy], i) => {
      const away = (toX(sx) - x) ** 2 + (chart ? 0 : (toY(sy) - y) ** 2);
      if (away < near) { near = away; best = i; }
    });
    const value = best < 0 ? null : data.rounds[now].readings[best];
    get("readout").textContent = best < 0 ? "Point at a sensor to read it." : `${data.sensorNames[best]}: ${value === null ? "not read in this round" : short(value)}`;
  });
  dark.addEventListener("change", played.again);
  new ResizeObserver(drawBars).observe(bars);

  view.width = WIDE * ratio; view.height = HIGH * ratio;
  names();
  legend();
  under.addEventListener("load", draw);
  if (data.image) under.src = data.image.uri;
  played.again();
  document.body.dataset.loaded = "yes";
  played.begin();
})();
