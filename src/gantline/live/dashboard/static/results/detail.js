// One result: a run with its measures and its Gantt chart, a sweep as a grid, or the reason why it cannot be read.

import { Component, h } from "../vendor/preact.js";
import { cut, plural } from "../format.js";
import { addressOf } from "../route.js";
import { Loader } from "../parts/loader.js";
import { Refused } from "../parts/refused.js";
import { speller, split } from "./measures.js";
import { SweepGrid } from "./sweep_grid.js";

export class RunDetail extends Component {
  componentDidMount() {
    this.found = new Loader(() => this.setState({}));
    this.found.load((signal) => this.props.app.api.get("/v1/runs/detail", { name: this.props.name }, signal));
  }

  componentWillUnmount() {
    this.found.stop();
  }

  render({ name }) {
    const { value, error } = this.found ?? {};
    return h("div", { class: "results-page stack" },
      h("p", { class: "small" }, h("a", { href: addressOf("results") }, "all results")),
      h("h1", null, cut(name, 300)),
      error && h(Refused, { error }),
      !value && !error && h("p", { class: "quiet", role: "status" }, "Reading …"),
      value?.kind === "broken" && h("p", { class: "refused", role: "alert" }, h("strong", null, "This result cannot be read. "), cut(value.error, 1000)),
      value?.kind === "run" && h(Run, { found: value }),
      value?.kind === "sweep" && h(SweepGrid, { found: value }));
  }
}

function Run({ found }) {
  const row = (one) => h("tr", { key: one.key, "data-measure": one.key }, h("th", { scope: "row" }, one.label), h("td", { class: "number" }, speller(one.unit, [one.value])(one.value)));
  const known = found.measures.filter((one) => one.value != null), [matter, rest] = split(known), facts = Object.entries(found.summary ?? {}).filter(([, value]) => typeof value !== "object" && value !== "");
  return h("div", { class: "stack" },
    known.length === 0 && h("p", { class: "empty" }, "This run holds no job that ended, so there is nothing to measure."),
    h("p", null, h("a", { href: addressOf("history", "", { run: found.name }) }, "its Gantt chart and queue over time")),
    h("table", { class: "facts measures" }, h("tbody", null, matter.map(row))),
    found.doubts?.length > 0 && h("details", null, h("summary", null, plural(found.doubts.length, "doubt")), found.doubts.map((line) => h("p", { key: line, class: "wrap" }, cut(line, 600)))),
    rest.length > 0 && h("details", null, h("summary", null, `${rest.length} more measures`), h("table", { class: "facts measures" }, h("tbody", null, rest.map(row)))),
    facts.length > 0 && h("details", null, h("summary", null, "how it was made"), h("table", { class: "facts" }, h("tbody", null, facts.map(([key, value]) => h("tr", { key }, h("th", { scope: "row" }, cut(key, 80)), h("td", null, cut(String(value), 500))))))));
}
