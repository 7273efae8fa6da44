// Paints the map on a canvas. State is told by shape, category by colour: free is pale, cordoned is hollow with a cross, reserved has a
// notch; what is lit keeps its colour and gets an edge, everything else pales.

import { cellAt, tileAt } from "./map_layout.js";

const FADED = 0.22;

export class MapPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  /** Set size and colours; everything has to be painted after that. */
  prepare(layout, colours) {
    const scale = devicePixelRatio || 1;
    this.layout = layout;
    this.colours = colours;
    this.canvas.width = Math.round(layout.width * scale);
    this.canvas.height = Math.round(layout.height * scale);
    this.canvas.style.width = `${layout.width}px`;
    this.canvas.style.height = `${layout.height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
  }

  /** `look(device)` is {category: 0..7 or -1 where free, state: u, c or r, lit: true, false or null where nothing is lit}. */
  all(look) {
    const { context, layout } = this;
    context.clearRect(0, 0, layout.width, layout.height);
    for (let place = 0; place < layout.nodes.length; place++) this.node(place, look);
  }

  node(place, look) {
    const node = this.layout.nodes[place], shining = [];
    for (let index = 0; index < node.count; index++) {
      const seen = look(node.first + index);
      if (seen.lit) shining.push([index, seen]);
      else this.cell(place, index, seen);
    }
    for (const [index] of shining) this.edge(place, index); // below all of them, so that a gang has one edge
    for (const [index, seen] of shining) this.cell(place, index, seen);
  }

  /** Devices that changed. Where something shines, the whole node is painted, because edges lie over its neighbours. */
  some(devices, placeOf, look) {
    const { context, layout } = this, { side, gap } = layout, whole = new Set();
    for (const device of devices) {
      const place = placeOf(device), index = device - layout.nodes[place].first, seen = look(device);
      if (seen.lit !== null) {
        whole.add(place);
        continue;
      }
      const { x, y } = cellAt(layout, place, index);
      context.clearRect(x, y, side + gap / 2, side + gap / 2);
      this.cell(place, index, seen);
    }
    for (const place of whole) {
      const { x, y } = tileAt(layout, place);
      context.clearRect(x - 2, y - 2, layout.tileWidth + 4, layout.tileHeight + 4);
      this.node(place, look);
    }
  }

  cell(place, index, { category, state, lit }) {
    const { context, colours } = this, { side, gap } = this.layout;
    const { x, y } = cellAt(this.layout, place, index);
    const full = gap ? side : side - 0.6; // devices that touch keep a hairline between them
    context.globalAlpha = lit === false ? FADED : 1;
    if (category >= 0) {
      context.fillStyle = colours.categories[category];
      context.fillRect(x, y, full, full);
    } else if (state !== "c") {
      context.fillStyle = colours.free;
      context.fillRect(x, y, full, full);
    }
    context.globalAlpha = lit === false ? 0.5 : 1;
    if (state === "c") this.cross(x, y, full, category >= 0);
    else if (state === "r") this.notch(x, y, full);
    context.globalAlpha = 1;
  }

  cross(x, y, side, busy) {
    const { context, colours } = this;
    context.strokeStyle = busy ? colours.ground : colours.hatch;
    context.lineWidth = side > 10 ? 1.5 : 1;
    context.beginPath();
    if (!busy) context.rect(x + 0.5, y + 0.5, side - 1, side - 1);
    context.moveTo(x + 0.5, y + 0.5);
    context.lineTo(x + side - 0.5, y + side - 0.5);
    context.moveTo(x + side - 0.5, y + 0.5);
    context.lineTo(x + 0.5, y + side - 0.5);
    context.stroke();
  }

  notch(x, y, side) {
    const { context, colours } = this;
    context.fillStyle = colours.text;
    context.beginPath();
    context.moveTo(x + side, y);
    context.lineTo(x + side, y + side * 0.6);
    context.lineTo(x + side * 0.4, y);
    context.fill();
  }

  edge(place, index) {
    const { context, colours } = this, { side, gap } = this.layout;
    const { x, y } = cellAt(this.layout, place, index), width = side > 10 ? 2 : 1.5;
    context.fillStyle = colours.text;
    context.fillRect(x - width, y - width, side + gap + 2 * width, side + gap + 2 * width);
  }

  /** The node that the keyboard is at. */
  cursor(place) {
    const { context, layout, colours } = this, { x, y } = tileAt(layout, place);
    context.strokeStyle = colours.accent;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, layout.tileWidth + 2, layout.tileHeight + 2);
  }
}
