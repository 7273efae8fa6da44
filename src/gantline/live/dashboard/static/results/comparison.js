// Several runs side by side: measures in one table, their Gantt charts stacked on one time axis, one order and one colour per run throughout.

import { Component, h } from "../vendor/preact.js";
import { cut, duration } from "../format.js";
import { addressOf } from "../route.js";
import { Gantt } from "../parts/gantt.js";
import { LineChart } from "../parts/line_chart.js";
import { Loader } from "../parts/loader.js";
import { Refused } from "../parts/refused.js";
import { bestOf, speller, split } from "./measures.js";

export class Comparison extends Component {
  state = { from: undefined, to: undefined };

  componentDidMount() {
    const again = () => this.setState({});
    this.details = new Loader(again);
    this.charts = new Loader(again);
    const { app: { api }, names } = this.props;
    this.details.load((signal) => Promise.all(names.map((name) => api.get("/v1/runs/detail", { name }, signal))));
    this.look();
  }

  componentWillUnmount() {
    this.details.stop();
    this.charts.stop();
  }

  /** All charts of one window: that of the longest run, unless it was zoomed. */
  look() {
    const { app: { api }, names } = this.props, width = Math.max(200, document.getElementById("page").clientWidth - 100);
    this.charts.load(async (signal) => {
      let { from, to } = this.state;
      if (to === undefined) {
        const whole = await Promise.all(names.map((name) => api.get("/v1/runs/series", { name, width: 2 }, signal)));
        from = Math.min(...whole.map((one) => one.from));
        to = Math.max(...whole.map((one) => one.to));
      }
      const gantts = await Promise.all(names.map((name) => api.get("/v1/runs/gantt", { name, from, to, width, rows: 60 }, signal)));
      const series = await Promise.all(names.map((name) => api.get("/v1/runs/series", { name, from, to, width: Math.min(400, width) }, signal)));
      const lines = (key) => series.map((one, at) => ({ name: names[at], values: one[key], colour: at % 7, dash: at, step: true }));
      return { from, to, gantts, x: series[0].time.slice(0, series[0].busy.length), busy: lines("busy"), waiting: lines("waiting") };
    });
  }

  zoom = (from, to) => this.setState({ from: Math.max(0, from), to }, () => this.look());

  render({ names }) {
    const details = this.details?.value, charts = this.charts?.value;
    return h("div", { class: "results-page stack" },
      h("p", { class: "small" }, h("a", { href: addressOf("results") }, "all results")),
      h("h1", null, `Comparison of ${names.length} runs`),
      [this.details, this.charts].map((loader) => loader?.error && h(Refused, { error: loader.error })),
      details && h(Measures, { runs: details, names }),
      charts && h("section", { "aria-label": "over time", class: "stack" },
        h("div", { class: "controls" }, h("h2", null, "Over time"), h("span", { class: "quiet small window" }, `${duration(charts.from)} to ${duration(charts.to)}`), h("button", { type: "button", onClick: () => this.setState({ from: undefined, to: undefined }, () => this.look()) }, "whole runs")),
        charts.gantts.map((gantt, at) => h("div", { key: names[at] }, h("h3", null, h("span", { class: `swatch inline c${at % 7}` }), ` ${cut(names[at], 80)}`), h(Gantt, { gantt, by: "user", relative: true, onZoom: this.zoom }))),
        h(LineChart, { title: "Devices busy", x: charts.x, lines: charts.busy, from: charts.from, to: charts.to, height: 150, onZoom: this.zoom }),
        h(LineChart, { title: "Jobs waiting", x: charts.x, lines: charts.waiting, from: charts.from, to: charts.to, height: 150, onZoom: this.zoom })));
  }
}

function Measures({ runs, names }) {
  const broken = runs.map((run, at) => (run.kind === "run" ? null : `${cut(names[at], 80)} cannot be compared: ${run.error ?? run.kind}`)).filter(Boolean);
  const good = runs.filter((run) => run.kind === "run");
  const order = good[0]?.measures ?? [];
  const value = (run, key) => run.measures.find((one) => one.key === key)?.value ?? null;
  const row = ({ key, label, unit, better }) => {
    const values = good.map((run) => value(run, key)), best = bestOf(better, values), spelled = speller(unit, values);
    return h("tr", { key, "data-measure": key }, h("th", { scope: "row" }, label), values.map((one, at) => h("td", { key: at, class: one === best ? "number best" : "number", "data-value": one }, spelled(one))));
  };
  const table = (rows) => h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "measures" }, h("table", { class: "list compare" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "measure"), good.map((run, at) => h("th", { key: run.name, scope: "col", class: "number" }, h("span", { class: `swatch inline c${at % 7}` }), ` ${cut(run.name, 40)}`)))), h("tbody", null, rows.map(row))));
  const [matter, rest] = split(order);
  return h("section", { "aria-label": "measures of runs" },
    broken.map((line) => h("p", { key: line, class: "refused", role: "alert" }, line)),
    order.length > 0 && table(matter),
    rest.length > 0 && h("details", null, h("summary", null, `${rest.length} more measures`), table(rest)));
}
