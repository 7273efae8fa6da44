// Results: finished runs, several side by side, and sweeps; what cannot be read says so in its place.

import { Component, h } from "../vendor/preact.js";
import { clock, count, cut, plural } from "../format.js";
import { addressOf, go } from "../route.js";
import { Loader } from "../parts/loader.js";
import { Refused } from "../parts/refused.js";
import { RunDetail } from "../results/detail.js";
import { Comparison } from "../results/comparison.js";

const AT_ONCE = 100;

export class Results extends Component {
  state = { find: "", offset: 0, chosen: [] };

  componentDidMount() {
    this.list = new Loader(() => this.setState({}));
    this.look();
  }

  componentWillUnmount() {
    this.list.stop();
    clearTimeout(this.later);
  }

  look() {
    const { find, offset } = this.state;
    this.list.load((signal) => this.props.app.api.get("/v1/runs", { q: find, limit: AT_ONCE, offset }, signal));
  }

  find(text) {
    this.setState({ find: text, offset: 0 });
    clearTimeout(this.later);
    this.later = setTimeout(() => this.look(), 200);
  }

  page(offset) {
    this.setState({ offset }, () => this.look());
  }

  tick(name) {
    this.setState(({ chosen }) => ({ chosen: chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name] }));
  }

  render({ app, route }, { find, offset, chosen }) {
    const compared = route.query.with ? route.query.with.split("\n") : [];
    if (compared.length) return h(Comparison, { key: route.query.with, app, names: compared });
    if (route.what) return h(RunDetail, { key: route.what, app, name: route.what });
    const { value, error, busy } = this.list ?? {};
    return h("div", { class: "results-page" },
      h("h1", null, "Results"),
      error && h(Refused, { error }),
      !value && busy && h("p", { class: "quiet", role: "status" }, "Reading the folder …"),
      value && (value.folder === null
        ? h("p", { class: "empty" }, "This service was given no folder of results: start it with ", h("code", null, "gantline up --results FOLDER"), ", or run ", h("code", null, "gantline view FOLDER"), ".")
        : h("div", { class: "stack" },
          h("div", { class: "controls" },
            h("span", { class: "quiet wrap" }, `${plural(value.total, "result")} in ${cut(value.folder, 200)}`),
            h("input", { type: "search", "aria-label": "find results", placeholder: "find by name, policy or trace", value: find, onInput: (event) => this.find(event.target.value) }),
            h("button", { type: "button", class: "primary", disabled: chosen.length < 2, onClick: () => go("results", "", { with: chosen.join("\n") }) }, chosen.length < 2 ? "tick two or more to compare" : `Compare ${chosen.length}`)),
          value.runs.length === 0 ? h("p", { class: "empty" }, find ? "No result is like that." : "The folder holds no results.") : h(RunList, { runs: value.runs, chosen, onTick: (name) => this.tick(name) }),
          value.total > AT_ONCE && h("div", { class: "controls" },
            h("button", { type: "button", disabled: offset === 0, onClick: () => this.page(Math.max(0, offset - AT_ONCE)) }, "before"),
            h("span", { class: "quiet" }, `${count(offset + 1)} to ${count(Math.min(value.total, offset + AT_ONCE))}`),
            h("button", { type: "button", disabled: offset + AT_ONCE >= value.total, onClick: () => this.page(offset + AT_ONCE) }, "next")))));
  }
}

function RunList({ runs, chosen, onTick }) {
  return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "results" }, h("table", { class: "list" },
    h("thead", null, h("tr", null, ["", "name", "kind", "policy", "trace", "jobs", "written"].map((title) => h("th", { key: title, scope: "col" }, title || h("span", { class: "hidden" }, "chosen"))))),
    h("tbody", null, runs.map((run) => h("tr", { key: run.name },
      h("td", null, run.kind === "run" && h("input", { type: "checkbox", "aria-label": `compare ${cut(run.name, 80)}`, checked: chosen.includes(run.name), onChange: () => onTick(run.name) })),
      h("td", { title: cut(run.name, 500) }, h("a", { href: addressOf("results", run.name) }, cut(run.name, 60))),
      run.kind === "broken" ? h("td", { class: "bad", colSpan: 5, title: cut(run.error ?? "", 500) }, `cannot be read: ${cut(run.error ?? "", 120)}`) : [
        h("td", { key: "kind" }, run.kind), h("td", { key: "policy" }, cut(run.policy ?? "", 40)), h("td", { key: "trace" }, cut(run.trace ?? "", 40)),
        h("td", { key: "jobs" }, count(run.jobs)), h("td", { key: "written" }, clock(run.modified)),
      ])))));
}
