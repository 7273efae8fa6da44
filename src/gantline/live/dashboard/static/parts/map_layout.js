// Where each node and each of its devices lies on the map: tiles from left to right, as large as the room allows.

const PAD = 2; // room for the frame of the node at the edge
const LARGEST = 26, SMALLEST = 3; // pixels of a device's side

/** A layout of `nodes` for a width and a height that should suffice; where it cannot, the map is as wide as told and taller. */
export function layOut(nodes, width, height) {
  const most = nodes.reduce((found, node) => Math.max(found, node.count), 1);
  const rows = most >= 64 ? Math.ceil(Math.sqrt(most) / 2) : most >= 4 ? 2 : 1;
  const columns = Math.ceil(most / rows);
  let side = LARGEST, found = null;
  for (; side >= SMALLEST; side--) {
    found = tiled(nodes.length, columns, rows, side, width);
    if (found.height <= height) break;
  }
  return { ...found, columns, rows, nodes };
}

function tiled(many, columns, rows, side, width) {
  const gap = side > 12 ? 2 : side > 5 ? 1 : 0; // between devices
  const apart = side > 12 ? 12 : side > 5 ? 5 : 3; // between nodes
  const tileWidth = columns * (side + gap) - gap, tileHeight = rows * (side + gap) - gap;
  const across = Math.max(1, Math.floor((width - 2 * PAD + apart) / (tileWidth + apart)));
  const down = Math.ceil(many / across);
  return { side, gap, apart, tileWidth, tileHeight, across, width, height: Math.max(1, down * (tileHeight + apart) - apart) + 2 * PAD };
}

export function tileAt(layout, place) {
  const { across, tileWidth, tileHeight, apart } = layout;
  return { x: PAD + (place % across) * (tileWidth + apart), y: PAD + Math.floor(place / across) * (tileHeight + apart) };
}

export function cellAt(layout, place, index) {
  const tile = tileAt(layout, place), step = layout.side + layout.gap;
  return { x: tile.x + (index % layout.columns) * step, y: tile.y + Math.floor(index / layout.columns) * step };
}

/** The node (place) and the device (index, or -1) under a point; null beside all nodes. */
export function hit(layout, x, y) {
  const { across, tileWidth, tileHeight, apart, columns, side, gap, nodes } = layout;
  x -= PAD;
  y -= PAD;
  const column = Math.floor(x / (tileWidth + apart)), row = Math.floor(y / (tileHeight + apart));
  const place = row * across + column;
  if (column < 0 || column >= across || place < 0 || place >= nodes.length) return null;
  const inX = x - column * (tileWidth + apart), inY = y - row * (tileHeight + apart);
  if (inX >= tileWidth || inY >= tileHeight) return null;
  const index = Math.floor(inY / (side + gap)) * columns + Math.floor(inX / (side + gap));
  return { place, index: index < nodes[place].count ? index : -1 };
}
