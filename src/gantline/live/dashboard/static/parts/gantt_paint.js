// Paints a Gantt chart from the raster that the service computed for this width: spans in pixels, one row per device or group of devices.

export const LEFT = 58; // pixels for names, as wide as the axis of the charts below

export class GanttPainter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  /** `colourOf(job)` is a category, `lit(job)` whether it shines (null: nothing does). */
  paint(gantt, width, height, colours, colourOf, lit) {
    const { context, canvas } = this, scale = devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const row = height / Math.max(1, gantt.rows.length), across = (width - LEFT) / gantt.width;
    const { spans } = gantt, inner = row > 4 ? row - 1 : row;
    for (let at = 0; at < spans.row.length; at++) {
      const job = spans.job[at];
      context.globalAlpha = ((spans.busy[at] ?? 255) / 255) * (lit && !lit(job) ? 0.2 : 1);
      context.fillStyle = colours.categories[colourOf(job)];
      context.fillRect(LEFT + spans.x0[at] * across, spans.row[at] * row, Math.max(0.7, (spans.x1[at] - spans.x0[at]) * across), inner);
    }
    context.globalAlpha = 1;
    this.names(gantt, row, colours);
  }

  names(gantt, row, colours) {
    const { context } = this, every = Math.max(1, Math.ceil(13 / row));
    context.fillStyle = colours.quiet;
    context.font = "11px system-ui";
    context.textBaseline = "middle";
    for (let at = 0; at < gantt.rows.length; at += every) context.fillText(gantt.rows[at].name, 0, (at + 0.5) * row, LEFT - 4);
  }

  /** The rectangle of a drag, over everything else. */
  band(x0, x1, height, colours) {
    const { context } = this;
    context.globalAlpha = 0.2;
    context.fillStyle = colours.accent;
    context.fillRect(Math.min(x0, x1), 0, Math.abs(x1 - x0), height);
    context.globalAlpha = 1;
  }
}

/** The span under a point, or -1. */
export function spanAt(gantt, width, height, x, y) {
  const row = Math.floor((y / height) * gantt.rows.length), at = ((x - LEFT) / (width - LEFT)) * gantt.width;
  const { spans } = gantt;
  for (let one = 0; one < spans.row.length; one++) if (spans.row[one] === row && spans.x0[one] <= at && at < spans.x1[one]) return one;
  return -1;
}
