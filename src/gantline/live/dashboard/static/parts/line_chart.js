// Lines over time or over anything else, drawn by uPlot in the colours of the theme.

import { Component, createRef, h } from "../vendor/preact.js";
import uPlot from "../vendor/uplot.js";
import { axisTime, brief, number } from "../format.js";
import { onTheme, themeColours } from "./palette.js";

const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4]];

/**
 * Props: `title`, `x` (numbers), `lines` ([{name, values, colour, dash, step, fill}]), `time` (whether x are seconds since 1970, else of a run), `unit`,
 * `height`, `onZoom(from, to)` where a drag asks for another window instead of enlarging what is there.
 */
export class LineChart extends Component {
  box = createRef();

  componentDidMount() {
    this.forget = onTheme(() => this.draw());
    this.watch = new ResizeObserver(() => this.plot && this.plot.width !== this.box.current.clientWidth && this.resize());
    this.watch.observe(this.box.current);
    this.draw();
  }

  componentDidUpdate(before) {
    const { x, lines } = this.props;
    if (before.x === x && before.lines === lines) return;
    const same = this.plot && before.lines.map((line) => line.name).join("\n") === lines.map((line) => line.name).join("\n");
    if (same) this.plot.setData(this.data());
    else this.draw();
  }

  componentWillUnmount() {
    this.forget();
    this.watch.disconnect();
    this.plot?.destroy();
  }

  data() {
    return [this.props.x, ...this.props.lines.map((line) => line.values)];
  }

  resize() {
    this.plot.setSize({ width: this.box.current.clientWidth, height: this.props.height ?? 160 });
  }

  draw() {
    const { lines, time = false, unit = "", height = 160, onZoom, from, to } = this.props, colours = themeColours();
    this.plot?.destroy();
    const axis = { stroke: colours.quiet, grid: { stroke: colours.line, width: 1 }, ticks: { stroke: colours.line, width: 1 }, font: "12px system-ui" };
    const spelled = (_, value) => (value == null ? "–" : `${number(value)}${unit ? ` ${unit}` : ""}`);
    this.plot = new uPlot({
      width: this.box.current.clientWidth, height,
      scales: { x: { time, ...(from !== undefined ? { range: () => [this.props.from, this.props.to] } : {}) }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high ?? 1) * 1.05 || 1] } },
      padding: [8, 0, null, null],
      axes: [{ ...axis, values: (_, ticks) => ticks.map((at) => (time ? axisTime(at, ticks[1] - ticks[0]) : brief(at))) }, { ...axis, size: 58, values: (_, ticks) => ticks.map((tick) => number(tick)) }],
      series: [{ label: time ? "time" : "at", value: (_, at) => (at == null ? "–" : time ? axisTime(at, 0) : brief(at)) }, ...lines.map((line, at) => ({
        label: line.name, stroke: colours.categories[line.colour ?? at % 7], width: 1.6, dash: DASHES[(line.dash ?? at) % DASHES.length], value: spelled,
        fill: line.fill ? `${colours.categories[line.colour ?? at % 7]}30` : undefined, paths: line.step ? uPlot.paths.stepped({ align: 1 }) : undefined, points: { show: lines[0].values.length < 3 },
      }))],
      cursor: { drag: { x: true, y: false, setScale: !onZoom } },
      hooks: onZoom ? { setSelect: [(plot) => this.zoom(plot, onZoom)] } : {},
    }, this.data(), this.box.current);
  }

  zoom(plot, onZoom) {
    const { left, width } = plot.select;
    if (width < 4) return;
    const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    onZoom(from, to);
  }

  render({ title, label }) {
    return h("figure", { class: "chart" }, h("figcaption", null, title), h("div", { ref: this.box, role: "img", "aria-label": label ?? title }));
  }
}
