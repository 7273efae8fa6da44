"use strict";
// Draws the figures of a page, which are plain values (`figures/for_page.py`), as SVG. Text reaches the document as text nodes, looks are
// classes of the style sheet and attributes of SVG: a strict content policy has nothing to allow, and dark needs no second drawing.
const Figures = (() => {
  const MARKS = {
    circle: "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0Z", square: "M-4-4H4V4H-4Z", diamond: "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
    "triangle-up": "M0-5.5L5 4H-5Z", "triangle-down": "M0 5.5L5-4H-5Z",
    cross: "M-5-2H-2V-5H2V-2H5V2H2V5H-2V2H-5Z",
  };
  const LETTER = 6.6;  // about as wide as a letter of a label, in pixels

  const make = (name, attributes = {}, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(key, value);
    if (text) made.textContent = text;
    return made;
  };
  const look = (layer, kind) => `${kind} ${layer.quiet ? "receding" : `c${layer.colour % 8}`}`;

  const human = (seconds) => {
    const [size, unit] = [[1, "s"], [60, "min"], [3600, "h"], [86400, "d"]].findLast(([size]) => seconds >= 2 * size) ?? [1, "s"];
    return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  };
  const spell = (axis, value) => {
    if (value === null || value === undefined) return "–";
    if (axis.percent) return `${Number((100 * value).toFixed(1))} %`;
    if (axis.log) return human(value);
    return Number(value.toPrecision(4)).toLocaleString("en");
  };

  // ---- axes: from values to pixels, and where the ticks stand
  const scale = (axis, [low, high], from, to) => {
    const bend = axis.log ? Math.log10 : (value) => value;
    const [first, span] = [bend(low), bend(high) - bend(low) || 1];
    const place = (value) => from + (bend(value) - first) / span * (to - from);
    place.value = (pixel) => (axis.log ? 10 ** (first + (pixel - from) / (to - from) * span) : first + (pixel - from) / (to - from) * span);
    return place;
  };
  const steps = (low, high, most, whole) => {
    const rough = (high - low) / Math.max(1, most) || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const size = Math.max(whole ? 1 : 0, [1, 2, 5, 10].find((step) => step * power >= rough) * power);
    const found = [];
    for (let at = Math.ceil(low / size - 1e-9); at * size <= high + size * 1e-9; at += 1) found.push(at * size);
    return found;
  };
  const ticksOf = (axis, [low, high], room, across) => {
    if (axis.ticks) {
      const inside = axis.ticks.filter(([value]) => value >= low && value <= high);
      const widest = across ? Math.max(1, ...inside.map(([, text]) => text.length)) * LETTER + 14 : 15;
      const every = Math.max(1, Math.ceil(inside.length * widest / Math.max(room, 1)));
      if (inside.length > 1 || !axis.log) return inside.filter((_, at) => at % every === 0);
    }
    if (axis.log) return steps(Math.log10(low), Math.log10(high), 4).map((power) => [10 ** power, human(10 ** power)]);
    const most = across ? room / 90 : Math.max(2, room / 45);
    return steps(low, high, most, axis.whole).map((value) => [value, spell(axis, value)]);
  };
  const rangeOf = (axis, panel, values) => {
    const known = panel.layers.flatMap(values).filter((value) => value !== null && Number.isFinite(value));
    const most = Math.max(...known, Number.NEGATIVE_INFINITY);
    const least = Math.min(...known, Number.POSITIVE_INFINITY);
    const edge = panel.layers.some((layer) => layer.markers) ? 0.04 : 0;  // a mark is whole at the edge, too
    const low = axis.low ?? (known.length ? least - edge * (most - least) : 0);
    let high = axis.high ?? (known.length ? most + 0.05 * (most - low) : 1);
    if (!(high > low)) high = low + 1;
    return [low, high];
  };
  const acrossOf = (layer) => layer.x ?? [];
  const upOf = (layer) => [...(layer.y ?? []), ...(layer.high ?? []), ...(layer.values ?? [])];

  // ---- layers
  const pathOf = (xs, ys, x, y, step) => {
    let [text, pen] = ["", false];
    ys.forEach((value, at) => {
      if (value === null || xs[at] === null) { pen = false; return; }
      const [across, up] = [x(xs[at]).toFixed(1), y(value).toFixed(1)];
      text += pen ? (step ? `H${across}V${up}` : `L${across} ${up}`) : `M${across} ${up}`;
      pen = true;
    });
    return text;
  };
  const markAt = (layer, x, y) => make("path", { d: MARKS[layer.mark], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: look(layer, "mark") });
  const draws = {
    line(layer, x, y, into) {
      if (layer.low) {
        const back = (values) => [...values].reverse();
        const around = pathOf([...layer.x, ...back(layer.x)], [...layer.high, ...back(layer.low)], x, y, false);
        into.append(make("path", { d: around.replaceAll("M", "L").replace("L", "M"), class: look(layer, "band") }));
      }
      into.append(make("path", { d: pathOf(layer.x, layer.y, x, y, layer.step), class: look(layer, "line"), "stroke-dasharray": layer.dash }));
      if (layer.markers) layer.x.forEach((value, at) => layer.y[at] !== null && into.append(markAt(layer, x(value), y(layer.y[at]))));
    },
    points(layer, x, y, into) {
      layer.x.forEach((value, at) => value !== null && layer.y[at] !== null && into.append(markAt(layer, x(value), y(layer.y[at]))));
    },
    bars(layer, x, y, into) {
      const width = 0.8 / layer.slots;
      layer.x.forEach((value, at) => {
        const left = value + (layer.slot - layer.slots / 2) * width;
        const [from, to, top] = [x(left), x(left + 0.94 * width), y(layer.y[at] ?? 0)];
        into.append(make("rect", { x: from, y: top, width: Math.max(1, to - from), height: Math.max(0, y(0) - top), class: look(layer, "bar") }));
      });
    },
    box(layer, x, y, into) {
      if (!layer.five.length) return;
      const [least, low, middle, high, most] = layer.five.map(y);
      const [left, right, centre] = [x(layer.at - 0.25), x(layer.at + 0.25), x(layer.at)];
      into.append(make("path", { d: `M${centre} ${least}V${low}M${centre} ${high}V${most}M${left} ${low}H${right}V${high}H${left}Z`, class: look(layer, "box") }));
      into.append(make("path", { d: `M${left} ${middle}H${right}`, class: look(layer, "line median") }));
      layer.values.forEach((value, at) => {
        const aside = layer.values.length > 1 ? 0.24 * at / (layer.values.length - 1) - 0.12 : 0;
        into.append(make("circle", { cx: x(layer.at + aside), cy: y(value), r: 3, class: look(layer, "seed") }));
      });
    },
    raster(layer, x, y, into) {
      const [left, top] = [x(layer.left), y(layer.top)];
      const size = { width: x(layer.right) - left, height: y(layer.bottom) - top };
      into.append(make("image", { href: layer.href, x: left, y: top, ...size, preserveAspectRatio: "none" }));
    },
  };
  // Names of points go to the first place around their point where they cover neither a point nor another name.
  const nameThem = (layers, x, y, area, into) => {
    const taken = layers.flatMap((layer) => layer.x.map((value, at) => [x(value) - 6, y(layer.y[at]) - 6, 12, 12]));
    for (const layer of layers) {
      (layer.texts ?? []).forEach((text, at) => {
        const [px, py, width] = [x(layer.x[at]), y(layer.y[at]), text.length * LETTER];
        const [right, up] = layer.toward;
        const places = [8, 16, 26, 38].flatMap((far) => [[right, up], [right, 0], [right, -up], [-right, up], [-right, 0], [-right, -up], [0, up], [0, -up]]
          .map(([dx, dy]) => [px + far * dx - (dx < 0 ? width : dx ? 0 : width / 2), py - far * dy - 7]));
        const free = ([left, top]) => left >= area.left && left + width <= area.right && top >= area.top && top + 14 <= area.bottom
          && taken.every(([l, t, w, h]) => left >= l + w || left + width <= l || top >= t + h || top + 14 <= t);
        const [left, top] = places.find(free) ?? places[0];
        taken.push([left, top, width, 14]);
        into.append(make("text", { x: left, y: top + 11, class: look(layer, "point-name") }, text));
      });
    }
  };

  // ---- a whole figure
  const drawPanel = (svg, panel, area, zoom, shows, { last, number, id }) => {
    const layers = panel.layers.filter((layer) => !layer.name || shows(layer.name));
    const across = zoom ?? rangeOf(panel.x, panel, acrossOf);
    const x = scale(panel.x, across, area.left, area.right);
    const y = scale(panel.y, rangeOf(panel.y, panel, upOf), area.bottom, area.top);
    const clip = `${id}-clip-${number}`;
    const window = make("clipPath", { id: clip });
    window.append(make("rect", { x: area.left, y: area.top - 6, width: area.right - area.left, height: area.bottom - area.top + 6 }));
    svg.append(window);
    for (const [value, text] of ticksOf(panel.y, rangeOf(panel.y, panel, upOf), area.bottom - area.top, false)) {
      svg.append(make("path", { d: `M${area.left} ${y(value).toFixed(1)}H${area.right}`, class: "grid" }));
      svg.append(make("text", { x: area.left - 6, y: y(value) + 4, class: "tick", "text-anchor": "end" }, text));
    }
    for (const [value, text] of ticksOf(panel.x, across, area.right - area.left, true)) {
      svg.append(make("path", { d: `M${x(value).toFixed(1)} ${area.top}V${area.bottom}`, class: "grid" }));
      if (last) svg.append(make("text", { x: x(value), y: area.bottom + 16, class: "tick", "text-anchor": "middle" }, text));
    }
    const middle = (area.top + area.bottom) / 2;
    svg.append(make("text", { transform: `translate(13 ${middle}) rotate(-90)`, class: "axis", "text-anchor": "middle" }, panel.y.title));
    if (last) svg.append(make("text", { x: (area.left + area.right) / 2, y: area.bottom + 36, class: "axis", "text-anchor": "middle" }, panel.x.title));
    const inside = make("g", { "clip-path": `url(#${clip})` });
    layers.forEach((layer) => draws[layer.kind](layer, x, y, layer.kind === "points" ? svg : inside));
    svg.append(inside);
    nameThem(layers.filter((layer) => layer.kind === "points"), x, y, area, svg);
    return { panel, layers, area, x, y };
  };

  const legendOf = (figure, hidden, redraw) => {
    const row = document.createElement("div");
    row.className = "legend";
    for (const entry of figure.legend) {
      const one = document.createElement("button");
      one.type = "button";
      one.setAttribute("aria-pressed", String(!hidden.has(entry.name)));
      one.disabled = Boolean(entry.shade);  // the colours of a picture cannot be taken out of it
      const sample = make("svg", { width: 28, height: 12, "aria-hidden": "true" });
      if (entry.kind === "line") sample.append(make("path", { d: "M0 6H28", class: look(entry, "line"), "stroke-dasharray": entry.dash }));
      else if (entry.kind === "mark") sample.append(markAt(entry, 14, 6));
      else sample.append(make("rect", { x: 8, width: 12, height: 12, ...(entry.shade ? { fill: entry.shade } : { class: look(entry, "bar") }) }));
      one.append(sample, entry.name);
      one.addEventListener("click", () => { if (!hidden.delete(entry.name)) hidden.add(entry.name); redraw(); });
      row.append(one);
    }
    return row;
  };

  const draw = (place, figure, width = place.clientWidth) => {
    const state = place.figureState ??= { zoom: null, hidden: new Set() };
    const redraw = () => draw(place, figure);
    const longest = Math.max(3, ...figure.panels.flatMap(({ y, ...panel }) =>
      ticksOf(y, rangeOf(y, panel, upOf), panel.height, false).map(([, text]) => text.length)));
    const left = Math.min(34 + longest * LETTER, width * 0.36);
    const gap = figure.panels.length > 1 ? 14 : 0;
    const height = 10 + figure.panels.reduce((sum, panel) => sum + panel.height + gap, 0) - gap + 42;
    const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "figure" });
    let top = 10;
    const drawn = figure.panels.map((panel, number) => {
      const area = { left, right: width - 14, top, bottom: top + panel.height };
      top += panel.height + gap;
      const facts = { last: number === figure.panels.length - 1, number, id: place.id };
      return drawPanel(svg, panel, area, state.zoom, (name) => !state.hidden.has(name), facts);
    });
    place.replaceChildren(...(figure.legend.length ? [legendOf(figure, state.hidden, redraw)] : []), svg);
    FigureReader.watch(place, svg, drawn, state, redraw, spell);
  };

  return { draw };
})();
