"use strict";
// What a reader does with a figure: point at it for values, drag over it to look closer, double-click to come back.
const FigureReader = (() => {
  const NEAR = 26;  // pixels
  const line = (text) => { const made = document.createElement("div"); made.textContent = text; return made; };

  const nearest = (layer, value) => {
    let [low, high] = [0, layer.x.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (layer.x[middle] <= value) low = middle; else high = middle - 1;
    }
    const next = Math.min(low + 1, layer.x.length - 1);
    return !layer.step && Math.abs(layer.x[next] - value) < Math.abs(layer.x[low] - value) ? next : low;
  };

  const words = (found, px, py, spell) => {
    const { panel, layers, x, y } = found;
    const points = layers.filter((layer) => layer.kind === "points").flatMap((layer) => layer.x.map((value, at) => ({ layer, at, far: Math.hypot(x(value) - px, y(layer.y[at]) - py) })));
    const [close] = points.sort((a, b) => a.far - b.far);
    if (close && close.far < NEAR) {
      const { layer, at } = close;
      const where = panel.y.ticks ? panel.y.ticks.find(([value]) => value === layer.y[at])?.[1] ?? "" : spell(panel.y, layer.y[at]);
      return [layer.texts?.[at] ?? layer.name, `${panel.x.title}: ${spell(panel.x, layer.x[at])}`, `${panel.y.title}: ${where}`];
    }
    const curves = layers.filter((layer) => layer.kind === "line" && !layer.quiet && layer.x.length);
    if (!curves.length) return [];
    return [`${panel.x.title}: ${spell(panel.x, x.value(px))}`, ...curves.map((layer) => `${layer.name}: ${spell(panel.y, layer.y[nearest(layer, x.value(px))])}`)];
  };

  const watch = (place, svg, drawn, state, redraw, spell) => {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    place.append(tip);
    const veil = document.createElementNS(svg.namespaceURI, "rect");
    veil.setAttribute("class", "veil");
    let from = null;
    const at = (event) => { const box = svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    const panelAt = ([px, py]) => drawn.find(({ area }) => px >= area.left && px <= area.right && py >= area.top - 6 && py <= area.bottom + 6);
    svg.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button || !panelAt(at(event))) return;
      from = at(event);
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => {
      const here = at(event);
      if (from) {
        const { area } = drawn[0];
        const [left, right] = [from[0], Math.min(Math.max(here[0], area.left), area.right)].sort((a, b) => a - b);
        const size = { x: left, y: drawn[0].area.top, width: right - left, height: drawn.at(-1).area.bottom - drawn[0].area.top };
        Object.entries(size).forEach(([name, value]) => veil.setAttribute(name, value));
        svg.append(veil);
        return;
      }
      const found = panelAt(here);
      const told = found ? words(found, ...here, spell) : [];
      tip.hidden = !told.length;
      if (!told.length) return;
      tip.replaceChildren(...told.map(line));
      const room = place.clientWidth - tip.offsetWidth - 4;
      tip.style.left = `${Math.max(0, Math.min(here[0] + 14, room))}px`;
      tip.style.top = `${svg.getBoundingClientRect().top - place.getBoundingClientRect().top + here[1] + 16}px`;
    });
    svg.addEventListener("pointerup", (event) => {
      if (!from) return;
      const [first, { x, area }] = [from, drawn[0]];
      from = null;
      const ends = [first[0], Math.min(Math.max(at(event)[0], area.left), area.right)].sort((a, b) => a - b);
      if (ends[1] - ends[0] < 8) { veil.remove(); return; }
      state.zoom = ends.map(x.value);
      redraw();
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    svg.addEventListener("dblclick", () => { state.zoom = null; redraw(); });
  };

  return { watch };
})();
