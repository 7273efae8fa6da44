// History: the Gantt chart with the queue and the busy devices on the same axis; of the service, or of a finished run.

import { Component, h } from "../vendor/preact.js";
import { clock, duration, plural } from "../format.js";
import { go } from "../route.js";
import { Gantt } from "../parts/gantt.js";
import { LineChart } from "../parts/line_chart.js";
import { Loader } from "../parts/loader.js";
import { Refused } from "../parts/refused.js";

const WINDOWS = [["1 h", 3600], ["6 h", 6 * 3600], ["24 h", 86_400], ["7 d", 7 * 86_400], ["30 d", 30 * 86_400]];

export class History extends Component {
  state = { by: "user" };

  componentDidMount() {
    this.found = new Loader(() => this.setState({}));
    this.look();
  }

  componentDidUpdate(before) {
    if (before.route !== this.props.route) this.look();
  }

  componentWillUnmount() {
    this.found.stop();
  }

  look() {
    const { app: { api }, route: { query } } = this.props, { from, to, run } = query;
    const base = run ? "/v1/runs/" : "/v1/", asked = { name: run, from, to };
    const width = Math.max(200, Math.min(2400, Math.round(document.getElementById("page").clientWidth - 100)));
    this.found.load(async (signal) => {
      const gantt = await api.get(`${base}gantt`, { ...asked, width }, signal);
      const series = await api.get(`${base}series`, { ...asked, from: gantt.from, to: gantt.to, width: Math.min(600, width) }, signal);
      return { gantt, series, ...chartsOf(series) };
    });
  }

  zoom = (from, to) => {
    const { query } = this.props.route;
    go("history", "", { ...query, from: Math.max(0, from).toFixed(3), to: to.toFixed(3) });
  };

  render({ app, route }, { by }) {
    const { run } = route.query, live = app.me.kind === "live" && !run, found = this.found?.value;
    const now = live ? app.live.board.now() : 0;
    const whole = () => go("history", "", { run });
    const spelled = live ? (at) => clock(at, now) : (at) => duration(at);
    return h("div", { class: "history-page" },
      h("h1", null, run ? `History of ${run}` : "History"),
      h("div", { class: "controls" },
        live && WINDOWS.map(([title, seconds]) => h("button", { key: title, type: "button", onClick: () => this.zoom(now - seconds, now) }, title)),
        found && h("button", { type: "button", onClick: () => this.zoom(found.gantt.from - (found.gantt.to - found.gantt.from) / 2, found.gantt.to + (found.gantt.to - found.gantt.from) / 2) }, "zoom out"),
        h("button", { type: "button", onClick: whole }, live ? "last 24 h" : "whole run"),
        h("label", null, "colour by", h("select", { value: by, onChange: (event) => this.setState({ by: event.target.value }) }, ["user", "queue", "job"].map((one) => h("option", { key: one, value: one }, one)))),
        this.found?.busy && h("span", { class: "quiet", role: "status" }, "drawing …")),
      this.found?.error && h(Refused, { error: this.found.error }),
      found && h("div", { class: "stack" },
        h("p", { class: "quiet small window" }, `${spelled(found.gantt.from)} to ${spelled(found.gantt.to)} · ${plural(found.gantt.jobs.id.length, "job")}`),
        found.gantt.spans.row.length
          ? h(Gantt, { gantt: found.gantt, by, relative: !live, onZoom: this.zoom, onJob: live ? (id) => go("job", id) : undefined })
          : h("p", { class: "empty" }, "Nothing ran in this window."),
        h(LineChart, { title: "Devices busy", x: found.x, time: live, from: found.gantt.from, to: found.gantt.to, lines: found.busy, height: 140, onZoom: this.zoom }),
        h(LineChart, { title: "Jobs waiting and running", x: found.x, time: live, from: found.gantt.from, to: found.gantt.to, lines: found.queue, height: 140, onZoom: this.zoom })));
  }
}

/** The lines of both charts, made once per answer so that charts can see whether anything is new. */
function chartsOf(series) {
  return {
    x: series.time.slice(0, series.busy.length),
    busy: [{ name: "busy", values: series.busy, colour: 0, dash: 0, step: true, fill: true }, { name: "all devices", values: series.busy.map(() => series.devices), colour: 7, dash: 1, step: true }],
    queue: [{ name: "waiting", values: series.waiting, colour: 5, dash: 0, step: true }, { name: "running", values: series.running, colour: 2, dash: 1, step: true }],
  };
}
