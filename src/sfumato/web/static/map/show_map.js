// @ts-check
// Shows a map view (`sfumato.heatmap.map_view`) on MapLibre. It fetches nothing: pictures are in the view, and
// coastlines in land.js. What is shown was computed by the pipeline; here it is colored and placed.
import { LAND } from "./land.js";

/**
 * @typedef {{picture: string, ticks: [number, string][]}} Layer
 * @typedef {{x: number, y: number, share: number, low?: number, high?: number}} Place
 * @typedef {{silent: string, extent: number[], rings: Place[], untested: number[][], reach: number[],
 *   says: string[]}} Doubt
 * @typedef {{name: string, users?: number, rows?: number, low: number | null, high: number | null,
 *   remark: string}} ZoneTotal
 * @typedef {{name: string, group: string, rehearsal: boolean, statement: string, plainly: string, total: string,
 *   hint: string, legend: string, cell: string, layers: Layer[], zones: ZoneTotal[], hotspots: Place[],
 *   uncertainty: Doubt | null, ground?: number | null}} OneMap
 * @typedef {{format: string, kind: string, crs: string, bounds: number[], grid: number[], extent: number[],
 *   blurs: string[], blur: number, palettes: {light: string, dark: string}, outline: number[][][],
 *   grounds?: string[], zones: {name: string, polygons: number[][][][], map?: number | null}[], maps: OneMap[]}} MapView
 * @typedef {{maplibregl?: any, picture?: string, dark?: boolean, only?: number, promise?: boolean,
 *   moved?: (n: number) => void}} Options
 *   `maplibregl`: the library, if it is not a global; `picture`: the address of a PNG where WebGL is missing;
 *   `only`: the one map of several to show; `promise`: false where the page says it elsewhere; `moved` is
 *   told which of several is shown.
 * @typedef {{remove: () => void, map: any, units: (at: {lng: number, lat: number}) => [number, number],
 *   place: (x: number, y: number) => [number, number], show: (n: number) => void}} Shown
 */

const HATCH = "sfumato-hatch";
const DEGREE = 180 / Math.PI;

/** @param {string} tag @param {string} [className] @param {string} [text] @returns {HTMLElement} */
const make = (tag, className = "", text = "") => {
  const found = document.createElement(tag);
  found.className = className;
  found.textContent = text;
  return found;
};

/** @param {number} share @returns {string} */
const percent = (share) => `${(100 * share).toPrecision(2).replace(/\.0$/, "")}%`;

/** @param {number} latitude @returns {number} */
const mercator = (latitude) => Math.log(Math.tan(Math.PI / 4 + latitude / DEGREE / 2));
/** @param {number} y @returns {number} */
const latitudeOf = (y) => DEGREE * (2 * Math.atan(Math.exp(y)) - Math.PI / 2);

/**
 * From the map's units to longitude and latitude. A plane or an image is laid, a degree wide, on the
 * equator, where Mercator's projection is as good as flat.
 * @param {MapView} view @returns {(x: number, y: number) => [number, number]}
 */
const placing = (view) => {
  if (view.kind === "degrees") return (x, y) => [x, y];
  const [west, south, east, north] = view.grid, unit = 1 / (east - west), down = view.kind === "pixels" ? -1 : 1;
  return (x, y) => [(x - (west + east) / 2) * unit, down * (y - (south + north) / 2) * unit];
};

/** @param {string} uri @returns {Promise<{wide: number, high: number, grey: Uint8ClampedArray}>} */
const decoded = async (uri) => {
  const image = new Image();
  image.src = uri;
  await image.decode();
  const sheet = document.createElement("canvas");
  sheet.width = image.naturalWidth; sheet.height = image.naturalHeight;
  const pen = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d", { willReadFrequently: true }));
  pen.drawImage(image, 0, 0);
  const { data } = pen.getImageData(0, 0, sheet.width, sheet.height);
  return { wide: sheet.width, high: sheet.height, grey: data.filter((_, i) => i % 4 === 0) };
};

/**
 * Which row of a picture each row of the canvas shows: in degrees, canvases are stretched as Mercator is.
 * @param {MapView} view @param {number} high @returns {number[]}
 */
const rowsOf = (view, high) => {
  const [, south, , north] = view.extent;
  if (view.kind !== "degrees") return Array.from({ length: high }, (_, row) => row);
  const top = mercator(Math.min(north, 85)), bottom = mercator(Math.max(south, -85));
  return Array.from({ length: high }, (_, row) => {
    const latitude = latitudeOf(top + ((row + 0.5) / high) * (bottom - top));
    return Math.min(high - 1, Math.max(0, Math.floor(((north - latitude) / (north - south)) * high)));
  });
};

/**
 * From longitude and latitude back to the map's units.
 * @param {MapView} view @returns {(at: {lng: number, lat: number}) => [number, number]}
 */
const unplacing = (view) => {
  if (view.kind === "degrees") return ({ lng, lat }) => [lng, lat];
  const [west, south, east, north] = view.grid, unit = 1 / (east - west), down = view.kind === "pixels" ? -1 : 1;
  return ({ lng, lat }) => [lng / unit + (west + east) / 2, (down * lat) / unit + (south + north) / 2];
};

/** @param {any} gl @returns {boolean} */
const canDraw = (gl) => {
  if (!gl) return false;
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
};

/**
 * Show a map in an element, with its controls, legend and what was promised.
 * @param {HTMLElement} element @param {MapView} view @param {Options} [options]
 * @returns {Promise<Shown>}
 */
export async function showMap(element, view, options = {}) {
  const gl = options.maplibregl ?? /** @type {any} */ (globalThis).maplibregl;
  const night = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => options.dark ?? night.matches;
  let shown = options.only ?? 0, blur = view.blur, doubting = true;
  const now = () => view.maps[shown];

  // -- the page around it
  element.textContent = "";
  element.classList.add("sfumato-map");
  const frame = make("div", "sf-frame"), panel = make("div", "sf-controls"), said = make("div", "sf-said");
  const title = make("h2", "sf-title"), total = make("p", "sf-total"), promise = make("p", "sf-promise");
  promise.id = `sf-promise-${Math.random().toString(36).slice(2)}`;
  const stamp = make("div", "sf-stamp", "REHEARSAL");
  stamp.setAttribute("aria-hidden", "true");
  const legend = make("div", "sf-legend"), zones = make("div", "sf-zones");
  const status = make("p", "sf-status");
  status.setAttribute("aria-live", "polite");
  said.append(title, total, promise);
  element.append(said, panel, frame, legend, status, zones);

  const under = document.createElement("canvas");
  /** The image under this map, stretched as the heat is; whether there is one. */
  const lay = async () => {
    const uri = view.grounds?.[now().ground ?? -1];
    if (!uri) return false;
    const image = new Image();
    image.src = uri;
    await image.decode();
    if (!under.height) { under.width = image.width; under.height = image.height; }
    const pen = /** @type {CanvasRenderingContext2D} */ (under.getContext("2d"));
    const from = rowsOf({ ...view, extent: view.bounds }, under.height), scale = image.height / under.height;
    from.forEach((row, at) => pen.drawImage(image, 0, row * scale, image.width, scale, 0, at, under.width, 1));
    return true;
  };

  const canvas = document.createElement("canvas");
  const sizes = await decoded(now().layers[blur].picture);
  canvas.width = sizes.wide; canvas.height = sizes.high;

  const grounded = Boolean(view.grounds?.length);
  const paint = async () => {
    const { wide, high, grey } = await decoded(now().layers[blur].picture);
    const colors = Uint8Array.from(atob(view.palettes[isDark() ? "dark" : "light"]), (c) => c.charCodeAt(0));
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const pixels = pen.createImageData(wide, high);
    rowsOf(view, high).forEach((from, row) => {
      for (let column = 0; column < wide; column++) {
        const shade = grey[from * wide + column];
        // The ground shows where there is little, and a picture more than coasts do.
        const opacity = grounded ? Math.min(205, 4 * shade) : Math.min(255, 40 + 4 * shade);
        pixels.data.set([...colors.subarray(3 * shade, 3 * shade + 3), opacity], 4 * (row * wide + column));
      }
    });
    pen.putImageData(pixels, 0, 0);
  };

  const tell = () => {
    const one = now();
    title.textContent = one.name;
    total.textContent = one.total;
    promise.textContent = `${one.statement} ${one.plainly}`;
    promise.hidden = options.promise === false;
    stamp.hidden = !one.rehearsal;
    legend.textContent = "";
    const strip = document.createElement("canvas");
    strip.width = 256; strip.height = 1;
    strip.className = "sf-strip";
    const pen = /** @type {CanvasRenderingContext2D} */ (strip.getContext("2d"));
    const pixels = pen.createImageData(256, 1);
    const colors = Uint8Array.from(atob(view.palettes[isDark() ? "dark" : "light"]), (c) => c.charCodeAt(0));
    for (let i = 0; i < 256; i++) pixels.data.set([...colors.subarray(3 * i, 3 * i + 3), 255], 4 * i);
    pen.putImageData(pixels, 0, 0);
    const ticks = make("div", "sf-ticks");
    for (const [at, text] of one.layers[blur].ticks) {
      const tick = make("span", at === 0 ? "sf-first" : at === 1 ? "sf-last" : "", text);
      tick.style.left = `${100 * at}%`;
      ticks.append(tick);
    }
    legend.append(make("div", "", one.legend), strip, ticks, make("p", "sf-hint", one.hint));
    if (doubting && one.uncertainty) for (const text of one.uncertainty.says) legend.append(make("p", "sf-hint", text));
    zones.textContent = "";
    if (one.zones.length) {
      const table = make("table"), head = make("tr");
      table.append(make("caption", "", "Zones"));
      for (const name of ["zone", "estimate", "from", "to"]) {
        const cell = make("th", "", name);
        cell.setAttribute("scope", "col");
        head.append(cell);
      }
      table.append(head);
      const whole = (/** @type {number | null | undefined} */ n) => (n == null ? "–" : Math.round(n).toLocaleString("en"));
      for (const zone of one.zones) {
        const row = make("tr"), name = make("th", "", zone.name);
        name.setAttribute("scope", "row");
        if (zone.remark) name.append(make("div", "sf-hint", zone.remark));
        row.append(name, ...[zone.users ?? zone.rows, zone.low, zone.high].map((n) => make("td", "", whole(n))));
        table.append(row);
      }
      zones.append(table);
    }
  };

  /** @type {() => Promise<void>} */
  let redraw = async () => { await paint(); tell(); };

  /** @param {string} name @param {number} most @param {number} at @param {(n: number) => string} told @param {(n: number) => void} moved */
  const slider = (name, most, at, told, moved) => {
    const label = make("label", "sf-slider"), input = document.createElement("input"), value = make("output", "", told(at));
    input.type = "range"; input.min = "0"; input.max = String(most); input.step = "1"; input.value = String(at);
    input.dataset.name = name;
    input.setAttribute("aria-valuetext", told(at));
    input.addEventListener("input", () => {
      value.textContent = told(Number(input.value));
      input.setAttribute("aria-valuetext", told(Number(input.value)));
      moved(Number(input.value));
      void redraw();
    });
    label.append(make("span", "", name), input, value);
    return label;
  };
  panel.append(slider("Blur", view.blurs.length - 1, blur, (n) => view.blurs[n], (n) => { blur = n; }));
  /** @param {number} n */
  const turnTo = (n) => { shown = n; options.moved?.(n); };
  if (view.maps.length > 1 && options.only === undefined)
    panel.append(slider(/^\d{4}-|day$|^\d\dh$/.test(now().group) ? "Period" : "Map", view.maps.length - 1, 0, (n) => view.maps[n].group || view.maps[n].name, turnTo));
  if (view.maps.some((one) => one.uncertainty)) {
    const button = /** @type {HTMLButtonElement} */ (make("button", "", "Uncertainty"));
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      doubting = !doubting;
      button.setAttribute("aria-pressed", String(doubting));
      void redraw();
    });
    panel.append(button);
  }

  /** The heat over its image, as one picture. */
  const flat = async () => {
    if (!(await lay())) return canvas;
    const sheet = document.createElement("canvas"), [west, , east, north] = view.extent;
    sheet.width = under.width; sheet.height = under.height;
    const pen = /** @type {CanvasRenderingContext2D} */ (sheet.getContext("2d"));
    const [left, low, right, high] = view.bounds, x = under.width / (right - left), y = under.height / (high - low);
    const top = view.kind === "pixels" ? view.extent[1] - low : high - north;
    pen.drawImage(under, 0, 0);
    pen.drawImage(canvas, (west - left) * x, top * y, (east - west) * x, Math.abs(north - view.extent[1]) * y);
    return sheet;
  };

  const failing = () => {  // no WebGL: the picture, which says the same
    const image = document.createElement("img");
    image.alt = `Heatmap: ${now().name}. ${now().statement}`;
    frame.classList.add("sf-still");
    redraw = async () => {
      await paint();
      tell();
      image.src = options.picture ?? (await flat()).toDataURL();
    };
    frame.append(image, stamp);
    status.textContent = "This browser has no WebGL: the map is shown as a picture.";
  };
  if (!canDraw(gl)) {
    failing();
    await redraw();
    element.dataset.ready = "picture";
    return {
      map: null, units: unplacing(view), place: placing(view), remove: () => { element.textContent = ""; },
      show: (n) => { shown = n; void redraw(); } };
  }

  // -- the map
  const place = placing(view), [west, south, east, north] = view.extent;
  const down = view.kind === "pixels";
  /** @param {number} x0 @param {number} y0 @param {number} x1 @param {number} y1 */
  const corners = (x0, y0, x1, y1) => {
    const [top, bottom] = down ? [y0, y1] : [y1, y0];
    return [place(x0, top), place(x1, top), place(x1, bottom), place(x0, bottom)];
  };
  const zonesNow = () => lines(view.zones.filter((zone) => zone.map == null || zone.map === shown)
    .flatMap((zone) => zone.polygons.flat()));
  const lines = (/** @type {number[][][]} */ all) => ({
    type: "Feature", properties: {}, geometry: {
      type: "MultiLineString", coordinates: all.map((line) => line.map(([x, y]) => place(x, y))) },
  });
  const nothing = { type: "FeatureCollection", features: [] };
  const color = () => (isDark()
    ? { sea: "#14161a", land: "#22262c", coast: "#4a525c", ink: "#e8eaed" }
    : { sea: "#ffffff", land: "#f4f5f6", coast: "#b9c0c8", ink: "#1f2328" });
  const c = color();
  const style = {
    version: 8,
    sources: {
      land: { type: "geojson", data: view.kind !== "degrees" ? nothing : {
        type: "Feature", properties: {}, geometry: { type: "MultiPolygon", coordinates: LAND } } },
      heat: { type: "canvas", canvas, animate: false, coordinates: corners(west, south, east, north) },
      silent: { type: "geojson", data: nothing },
      rings: { type: "geojson", data: nothing },
      outline: { type: "geojson", data: lines(view.outline) },
      zones: { type: "geojson", data: zonesNow() },
      ...(await lay() ? { under: { type: "canvas", canvas: under, animate: false, coordinates: corners(
        view.bounds[0], view.bounds[1], view.bounds[2], view.bounds[3]) } } : {}),
    },
    layers: [
      { id: "sea", type: "background", paint: { "background-color": c.sea } },
      // A coast may be 50 km off: near the ground it would mislead, so it fades.
      { id: "land", type: "fill", source: "land", paint: { "fill-color": c.land,
        "fill-opacity": ["interpolate", ["linear"], ["zoom"], 6, 1, 8.5, 0] } },
      { id: "coast", type: "line", source: "land", paint: { "line-color": c.coast, "line-width": 1,
        "line-opacity": ["interpolate", ["linear"], ["zoom"], 6, 1, 8.5, 0] } },
      ...(grounded ? [{ id: "under", type: "raster", source: "under", paint: { "raster-fade-duration": 0 } }] : []),
      { id: "heat", type: "raster", source: "heat", paint: { "raster-fade-duration": 0, "raster-resampling": "linear" } },
      { id: "silent", type: "fill", source: "silent", paint: { "fill-pattern": HATCH } },
      { id: "outline", type: "line", source: "outline", paint: { "line-color": c.ink, "line-width": 0.8 } },
      { id: "zones", type: "line", source: "zones", paint: { "line-color": "#1565c0", "line-width": 2 } },
      { id: "rings", type: "line", source: "rings", filter: ["==", ["get", "sure"], true],
        paint: { "line-color": c.ink, "line-width": 1.6 } },
      { id: "untested", type: "line", source: "rings", filter: ["==", ["get", "sure"], false],
        paint: { "line-color": c.ink, "line-width": 1.2, "line-dasharray": [2, 2] } },
    ],
  };
  await paint();
  const box = [place(view.bounds[0], view.bounds[1]), place(view.bounds[2], view.bounds[3])];
  const sheet = make("div", "sf-canvas");
  frame.append(sheet, stamp);
  const map = new gl.Map({
    container: sheet, style, attributionControl: false, dragRotate: false, pitchWithRotate: false,
    touchPitch: false, renderWorldCopies: true, maxPitch: 0, canvasContextAttributes: { preserveDrawingBuffer: true },
    bounds: [[Math.min(box[0][0], box[1][0]), Math.min(box[0][1], box[1][1])],
      [Math.max(box[0][0], box[1][0]), Math.max(box[0][1], box[1][1])]],
    fitBoundsOptions: { padding: 16 },
  });
  map.touchZoomRotate.disableRotation();
  map.addControl(new gl.NavigationControl({ showCompass: false }), "top-right");
  if (view.kind === "degrees") map.addControl(new gl.ScaleControl(), "bottom-left");
  map.getCanvas().setAttribute("aria-label", "Heatmap. Arrow keys move, + and - zoom.");
  map.getCanvas().setAttribute("aria-describedby", promise.id);
  await new Promise((resolve) => { map.once("load", resolve); });

  const hatch = () => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const pen = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    pen.strokeStyle = isDark() ? "#8b949e" : "#5f6b7a";
    pen.lineWidth = 1;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) { pen.moveTo(shift, 8); pen.lineTo(shift + 8, 0); }
    pen.stroke();
    const data = pen.getImageData(0, 0, 8, 8);
    if (map.hasImage(HATCH)) map.updateImage(HATCH, data); else map.addImage(HATCH, data);
  };
  /** @type {any[]} */
  let markers = [];
  /** @param {Place} one @param {string} className @param {string} text */
  const mark = (one, className, text) => {
    const label = make("div", className, text);
    label.title = text;
    markers.push(new gl.Marker({ element: label }).setLngLat(place(one.x, one.y)).addTo(map));
  };

  /** Rows of silent cells as rectangles. @param {Doubt} doubt */
  const silentOf = async (doubt) => {
    const { wide, high, grey } = await decoded(doubt.silent);
    const [x0, y0, x1, y1] = doubt.extent, features = [];
    const x = (/** @type {number} */ column) => x0 + ((x1 - x0) * column) / wide;
    const y = (/** @type {number} */ row) => (down ? y0 + ((y1 - y0) * row) / high : y1 - ((y1 - y0) * row) / high);
    for (let row = 0; row < high; row++)
      for (let column = 0, from = 0; column < wide; column++) {
        if (!grey[row * wide + column]) { from = column + 1; continue; }
        if (column + 1 < wide && grey[row * wide + column + 1]) continue;
        const ring = [[from, row], [column + 1, row], [column + 1, row + 1], [from, row + 1], [from, row]];
        features.push({ type: "Feature", properties: {}, geometry: {
          type: "Polygon", coordinates: [ring.map(([i, j]) => place(x(i), y(j)))] } });
        from = column + 1;
      }
    return { type: "FeatureCollection", features };
  };
  /** @param {number} x @param {number} y @param {number[]} reach @param {boolean} sure */
  const ring = (x, y, reach, sure) => ({
    type: "Feature", properties: { sure }, geometry: { type: "LineString",
      coordinates: Array.from({ length: 65 }, (_, i) => place(
        x + reach[0] * Math.cos((i * Math.PI) / 32), y + reach[1] * Math.sin((i * Math.PI) / 32))) },
  });

  let turn = 0;
  redraw = async () => {
    const mine = ++turn;
    await paint();
    const one = now(), doubt = doubting ? one.uncertainty : null;
    const silent = doubt ? await silentOf(doubt) : nothing;
    if (mine !== turn) return;  // somebody moved on
    tell();
    const heat = map.getSource("heat");
    heat.play(); heat.pause();
    if (grounded && await lay()) { const ground = map.getSource("under"); ground.play(); ground.pause(); }
    map.getSource("zones").setData(zonesNow());
    map.getSource("silent").setData(silent);
    map.getSource("rings").setData(!doubt ? nothing : { type: "FeatureCollection", features: [
      ...doubt.rings.map((r) => ring(r.x, r.y, doubt.reach, true)),
      ...doubt.untested.map(([x, y]) => ring(x, y, doubt.reach, false))] });
    for (const old of markers) old.remove();
    markers = [];
    one.hotspots.forEach((spot, i) => mark(spot, "sf-spot", `${i + 1}: ${percent(spot.share)}`));
    const shades = color();
    map.setPaintProperty("sea", "background-color", shades.sea);
    map.setPaintProperty("land", "fill-color", shades.land);
    map.setPaintProperty("coast", "line-color", shades.coast);
    for (const id of ["outline", "rings", "untested"]) map.setPaintProperty(id, "line-color", shades.ink);
    hatch();
    map.triggerRepaint();
  };
  hatch();
  const repaint = () => { void redraw(); };
  night.addEventListener("change", repaint);
  await redraw();
  map.once("idle", () => { element.dataset.ready = "map"; });
  return {
    map, place, units: unplacing(view), show: (n) => { shown = n; void redraw(); },
    remove: () => { night.removeEventListener("change", repaint); map.remove(); element.textContent = ""; } };
}
