// Plays the maps of this page. Everything it shows is in the page; nothing is fetched.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const view = get("view"), bars = get("bars");
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const count = data.names.length, last = count - 1, [wide, high] = data.size;
  const greys = new Array(count), pen = view.getContext("2d");
  let now = 0, colors;

  // -- the map

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const sheet = document.createElement("canvas");
  sheet.width = wide; sheet.height = high;
  const brush = sheet.getContext("2d", { willReadFrequently: true });

  const load = (i) => {
    const picture = new Image();
    picture.addEventListener("load", () => {
      brush.drawImage(picture, 0, 0);
      greys[i] = brush.getImageData(0, 0, wide, high).data.filter((_, at) => at % 4 === 0);
      if (i === now) draw();
      if (i < last) load(i + 1); else document.body.dataset.loaded = "yes";
    });
    picture.src = data.frames[i];
  };

  const draw = () => {
    const grey = greys[now];
    if (!grey) return;
    const pixels = brush.createImageData(wide, high);
    for (let i = 0; i < grey.length; i++) {
      const c = 3 * grey[i];
      pixels.data.set([colors[c], colors[c + 1], colors[c + 2], 255 * cover(grey[i])], 4 * i);
    }
    brush.putImageData(pixels, 0, 0);
    pen.imageSmoothingQuality = "high";
    const [left, top, right, bottom] = data.box, toX = (part) => (left + part * (right - left)) * view.width;
    const toY = (part) => (top + part * (bottom - top)) * view.height;
    pen.clearRect(0, 0, view.width, view.height);
    if (data.under && under.complete) pen.drawImage(under, toX(0), toY(0), toX(1) - toX(0), toY(1) - toY(0));
    pen.drawImage(sheet, 0, 0, view.width, view.height);
    if (lines.length) outline(toX, toY);
    marks(toX, toY);
    pen.strokeStyle = style("--line"); pen.lineWidth = 1;
    pen.strokeRect(toX(0) + 0.5, toY(0) + 0.5, toX(1) - toX(0) - 1, toY(1) - toY(0) - 1);
  };

  // -- longitudes, latitudes and a scale bar, as in the other pictures

  const words = (text, x, y, ink) => {
    pen.lineJoin = "round"; pen.lineWidth = 3; pen.strokeStyle = data.under ? "#ffffffd9" : style("--paper");
    pen.strokeText(text, x, y);
    pen.fillStyle = ink; pen.fillText(text, x, y);
  };
  const marks = (toX, toY) => {
    const [across, up] = data.places, quiet = data.under ? "#444c56" : style("--grey");
    pen.strokeStyle = dark.matches && !data.under ? "#ffffff2e" : "#3040502e"; pen.lineWidth = 1;
    pen.beginPath();
    for (const [part] of across) { pen.moveTo(toX(part), toY(0)); pen.lineTo(toX(part), toY(1)); }
    for (const [part] of up) { pen.moveTo(toX(0), toY(part)); pen.lineTo(toX(1), toY(part)); }
    pen.stroke();
    pen.font = '14px system-ui, "DejaVu Sans", sans-serif';
    pen.textAlign = "left"; pen.textBaseline = "alphabetic";
    for (const [part, said] of across) if (toX(part) < toX(1) - 60) words(said, toX(part) + 4, toY(1) - 6, quiet);
    for (const [part, said] of up) if (toY(part) > toY(0) + 20 && toY(part) < toY(1) - 56) words(said, toX(0) + 6, toY(part) - 4, quiet);
    if (!data.scale) return;
    const [share, said] = data.scale, long = share * (toX(1) - toX(0)), x = toX(0) + 14, y = toY(1) - 32;
    const ink = data.under ? "#1f2328" : style("--ink");
    pen.fillStyle = data.under ? "#ffffff" : style("--paper"); pen.fillRect(x, y, long, 5);
    pen.fillStyle = ink; pen.fillRect(x, y, long / 2, 5);
    pen.strokeStyle = ink; pen.lineWidth = 1; pen.strokeRect(x + 0.5, y + 0.5, long - 1, 4);
    pen.textAlign = "right";
    words(said, x + long, y - 5, ink);
    pen.textAlign = "left";
  };

  // -- the ground: lines as parts of the bounds, and an image that fills them

  const under = new Image(), lines = [];
  const cover = (s) => (data.under ? Math.min((1.6 * s) / 255, 0.8) : 1);
  if (data.outline) {
    const positions = new Uint16Array(bytes(data.outline.positions).buffer), parts = Number(data.outline.parts);
    let first = 0;
    for (const many of new Uint32Array(bytes(data.outline.counts).buffer)) {
      lines.push(Array.from({ length: many }, (_, k) => {
        const y = positions[2 * (first + k) + 1] / parts;
        return [positions[2 * (first + k)] / parts, data.down ? y : 1 - y];
      }));
      first += many;
    }
  }
  const outline = (toX, toY) => {
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

  // -- people per period

  const most = Math.max(...data.totals, 1e-9);
  const many = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });
  const amount = (value) => `${many(value)} ${many(value) === "1" ? data.unit : data.units}`;
  const drawBars = () => {
    const ratio = window.devicePixelRatio || 1, width = bars.clientWidth, height = bars.clientHeight;
    bars.width = width * ratio; bars.height = height * ratio;
    const ink = bars.getContext("2d");
    ink.scale(ratio, ratio);
    const foot = height - 18, step = width / count, gap = Math.min(3, step / 4);
    data.totals.forEach((total, i) => {
      const tall = (total / most) * (foot - 14);
      ink.fillStyle = i === now ? "#b5367a" : style("--grey");
      ink.globalAlpha = i === now ? 1 : 0.45;
      ink.fillRect(i * step + gap / 2, foot - tall, Math.max(step - gap, 1), Math.max(tall, 1));
    });
    ink.globalAlpha = 1;
    const x = (now + 0.5) * step;
    ink.fillStyle = "#b5367a";
    ink.beginPath(); ink.moveTo(x, foot + 2); ink.lineTo(x - 5, foot + 10); ink.lineTo(x + 5, foot + 10); ink.fill();
    ink.fillStyle = style("--grey");
    ink.font = "12px system-ui, sans-serif";
    ink.textBaseline = "bottom";
    if (x > 110) { ink.textAlign = "left"; ink.fillText(data.names[0], 0, height); }
    if (x < width - 110 && count > 1) { ink.textAlign = "right"; ink.fillText(data.names[last], width, height); }
    ink.textAlign = "left";
    ink.fillText(amount(most), 0, 13);
  };

  // -- legend

  const legend = () => {
    const strip = get("strip"), pencil = strip.getContext("2d");
    pencil.fillStyle = "#c8c8c8";
    pencil.fillRect(0, 0, 512, 1);
    for (let i = 0; i < 512; i++) {
      const s = Math.round(255 * shade(data.top * (i / 511) ** 2, data.top, data.floors[now])), c = 3 * s;
      pencil.fillStyle = `rgba(${colors[c]},${colors[c + 1]},${colors[c + 2]},${cover(s)})`;
      pencil.fillRect(i, 0, 1, 1);
    }
    pencil.fillStyle = style("--ink");
    pencil.fillRect(Math.min(509, Math.round(511 * Math.sqrt(Math.min(data.floors[now] / data.top, 1)))), 0, 2, 1);
    get("unit").textContent = data.legend;
    get("marks").replaceChildren(...[0, 0.05, 0.25, 0.5, 1].map((part) => {
      const mark = document.createElement("li");
      mark.textContent = many(part * data.top * data.amount);
      mark.style.left = `${100 * Math.sqrt(part)}%`;
      return mark;
    }));
  };

  // -- one of them, and all in turn

  const show = (i) => {
    now = i;
    get("slider").setAttribute("aria-valuetext", data.names[now]);
    get("period").textContent = data.names[now];
    get("under").textContent = `${data.about[now]} ${data.said}.${data.empty[now] ? ` ${data.emptySaid}` : ""}`;
    document.title = `${data.names[now]} · ${data.title}`;
    draw();
    drawBars();
    legend();
  };
  const frames = player({ count, pace: data.pace, show });
  const recolor = () => { colors = bytes(data.palettes[dark.matches ? "dark" : "light"]); frames.again(); };
  dark.addEventListener("change", recolor);
  new ResizeObserver(drawBars).observe(bars);

  // The map in the ground's proportions, its longer side 900 points.
  const scale = 900 / Math.max(wide, high * data.stretch);
  view.width = Math.round(wide * scale); view.height = Math.round(high * data.stretch * scale);
  recolor();
  under.addEventListener("load", draw);
  if (data.under) under.src = data.under;
  load(0);
  frames.begin();
})();
