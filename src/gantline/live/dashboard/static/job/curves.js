// What a job reported of its training: throughput and loss over time.

import { Component, h } from "../vendor/preact.js";
import { LineChart } from "../parts/line_chart.js";
import { Loader } from "../parts/loader.js";

const PAUSE = 5000; // milliseconds between looks

export class Curves extends Component {
  componentDidMount() {
    this.loader = new Loader(() => this.setState({}));
    this.look();
    this.ticking = setInterval(() => this.props.running && this.look(), PAUSE);
  }

  componentWillUnmount() {
    clearInterval(this.ticking);
    this.loader.stop();
  }

  look() {
    const { app, id } = this.props;
    this.loader.load(async (signal) => {
      const { time, throughput, loss } = await app.api.get(`/v1/jobs/${encodeURIComponent(id)}/curve`, {}, signal);
      const known = (values) => (values?.some((value) => value !== null) ? values : null);
      return { time, charts: [["Throughput", "steps per second", known(throughput), 0], ["Loss", "", known(loss), 5]].filter(([, , values]) => values).map(([title, unit, values, colour]) => ({ title, unit, lines: [{ name: title.toLowerCase(), values, colour }] })) };
    });
  }

  render() {
    const found = this.loader?.value;
    if (!found?.charts.length) return null;
    return h("section", { class: "curves", "aria-label": "training" }, found.charts.map(({ title, unit, lines }) =>
      h(LineChart, { key: title, title: unit ? `${title} (${unit})` : title, x: found.time, time: true, lines, height: 150 })));
  }
}
