// The Gantt chart: drag to zoom, or the keyboard; every window is drawn anew by the service.

import { Component, createRef, h } from "../vendor/preact.js";
import { clock, cut, duration, plural } from "../format.js";
import { GanttPainter, LEFT, spanAt } from "./gantt_paint.js";
import { Palette, onTheme, themeColours } from "./palette.js";

/** Props: `gantt` (an answer of /v1/gantt), `by` (user, queue or job), `onZoom(from, to)`, `onJob(id)`, `relative` (times begin at zero). */
export class Gantt extends Component {
  canvas = createRef();
  box = createRef();
  state = { said: "", lit: -1 };

  componentDidMount() {
    this.painter = new GanttPainter(this.canvas.current);
    this.forget = onTheme(() => this.paint());
    this.watch = new ResizeObserver(() => this.box.current.clientWidth !== this.width && this.paint());
    this.watch.observe(this.box.current);
    this.paint();
  }

  componentDidUpdate(before, { lit }) {
    if (before.gantt !== this.props.gantt || before.by !== this.props.by || lit !== this.state.lit) this.paint();
  }

  componentWillUnmount() {
    this.forget();
    this.watch.disconnect();
  }

  paint() {
    const { gantt, by } = this.props, { jobs } = gantt;
    this.width = this.box.current.clientWidth;
    this.height = Math.max(90, Math.min(420, gantt.rows.length * 16));
    this.colours = themeColours();
    this.palette ??= {};
    const palette = (this.palette[by] ??= new Palette());
    if (by !== "job") palette.offer(ranked(gantt, by));
    const colour = by === "job" ? (job) => job % 7 : (job) => palette.of(jobs[by][job]);
    const { lit } = this.state;
    this.painter.paint(gantt, this.width, this.height, this.colours, colour, lit >= 0 ? (job) => job === lit : null);
  }

  at(x) {
    const { from, to } = this.props.gantt;
    return from + ((to - from) * Math.max(0, Math.min(this.width - LEFT, x - LEFT))) / (this.width - LEFT);
  }

  place(event) {
    const box = this.canvas.current.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  onDown = (event) => {
    [this.from] = this.place(event);
    this.canvas.current.setPointerCapture(event.pointerId);
  };

  onMove = (event) => {
    const [x, y] = this.place(event);
    if (this.from !== undefined && Math.abs(x - this.from) > 3) {
      this.paint();
      this.painter.band(this.from, x, this.height, this.colours);
    } else this.read(spanAt(this.props.gantt, this.width, this.height, x, y));
  };

  onUp = (event) => {
    const [x, y] = this.place(event), from = this.from;
    this.from = undefined;
    if (from !== undefined && Math.abs(x - from) > 3) this.props.onZoom(Math.min(this.at(from), this.at(x)), Math.max(this.at(from), this.at(x)));
    else {
      const span = spanAt(this.props.gantt, this.width, this.height, x, y);
      const id = span >= 0 ? this.props.gantt.jobs.id[this.props.gantt.spans.job[span]] : "-";
      if (id !== "-") this.props.onJob?.(id);
    }
  };

  read(span) {
    const { gantt } = this.props;
    const job = span >= 0 ? gantt.spans.job[span] : -1;
    if (job === this.state.lit) return;
    const { jobs } = gantt;
    this.setState({ lit: job, said: job < 0 ? "" : jobs.id[job] === "-" ? "a job of another user" : cut(`${jobs.id[job]} ${jobs.name[job]} · ${jobs.user[job]}${jobs.queue[job] ? ` · ${jobs.queue[job]}` : ""}`, 200) });
  }

  onKey = (event) => {
    const { from, to } = this.props.gantt, span = to - from;
    const windows = { "+": [from + span / 4, to - span / 4], "=": [from + span / 4, to - span / 4], "-": [from - span / 2, to + span / 2], ArrowLeft: [from - span / 4, to - span / 4], ArrowRight: [from + span / 4, to + span / 4] };
    if (!(event.key in windows)) return;
    event.preventDefault();
    this.props.onZoom(...windows[event.key]);
  };

  render({ gantt, relative }, { said }) {
    const spelled = relative ? (at) => duration(at) : (at) => clock(at);
    const label = `Gantt chart of ${plural(gantt.rows.length, "row")} and ${plural(gantt.jobs.id.length, "job")}, ${spelled(gantt.from)} to ${spelled(gantt.to)}; plus and minus zoom, arrow keys move`;
    return h("div", { class: "gantt", ref: this.box },
      h("canvas", { ref: this.canvas, tabIndex: 0, role: "application", "aria-label": label, onPointerDown: this.onDown, onPointerMove: this.onMove, onPointerUp: this.onUp, onPointerLeave: () => this.read(-1), onKeyDown: this.onKey }),
      h("p", { class: "readout quiet small" }, said || "drag to zoom; a click on a bar opens its job"));
  }
}

/** Users or queues of this window, those with most time first. */
function ranked({ spans, jobs }, by) {
  const sizes = new Map();
  for (let at = 0; at < spans.row.length; at++) {
    const name = jobs[by][spans.job[at]];
    sizes.set(name, (sizes.get(name) ?? 0) + spans.x1[at] - spans.x0[at]);
  }
  return [...sizes].sort(([, a], [, b]) => b - a).map(([name]) => name);
}
