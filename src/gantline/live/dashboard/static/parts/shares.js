// Share held beside share due: two bars per name on one scale for the last minute (`now`), and lines over time (`series`).

import { Component, h } from "../vendor/preact.js";
import { number } from "../format.js";
import { LineChart } from "./line_chart.js";

const label = (name) => (name === "" ? "(default)" : name === "-" ? "other users" : name);

export class Shares extends Component {
  state = { name: null };

  shouldComponentUpdate(next, state) {
    return next.series !== this.props.series || state !== this.state;
  }

  render({ series, now, kind, title }, { name }) {
    const held = now.held[kind] ?? {}, due = now.due[kind] ?? {};
    const names = [...new Set([held, due, series.held[kind] ?? {}].flatMap((one) => Object.keys(one)))];
    const last = (values) => values?.at(-1) ?? 0;
    const rows = names.map((one) => ({ name: one, held: last(held[one]), due: last(due[one]) })).sort((a, b) => b.held - a.held || b.due - a.due || (a.name < b.name ? -1 : 1));
    const most = Math.max(1, ...rows.flatMap((row) => [row.held, row.due]));
    const chosen = name !== null && names.includes(name) ? name : rows[0]?.name;
    if (!rows.length) return h("section", { "aria-label": title }, h("h2", null, title), h("p", { class: "quiet" }, "Nothing has run yet."));
    return h("section", { class: "shares", "aria-label": title },
      h("h2", null, title),
      h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": `${title}: held and due` }, h("table", { class: "list" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, kind), h("th", { scope: "col", class: "number" }, "held"), h("th", { scope: "col", class: "number" }, "due"), h("th", { scope: "col" }, "held above, due below"))),
        h("tbody", null, rows.slice(0, 30).map((row) => h("tr", { key: row.name, class: row.name === chosen ? "chosen-row" : null },
          h("td", null, h("button", { type: "button", class: "plain", "aria-pressed": row.name === chosen ? "true" : "false", onClick: () => this.setState({ name: row.name }) }, label(row.name))),
          h("td", { class: "number" }, number(row.held)), h("td", { class: "number" }, number(row.due)),
          h("td", { class: "bars" }, h("span", { class: "held", style: { width: `${(100 * row.held) / most}%` } }), h("span", { class: "due", style: { width: `${(100 * row.due) / most}%` } }))))))),
      rows.length > 30 && h("p", { class: "quiet small" }, `and ${rows.length - 30} more`),
      h(OverTime, { series, kind, name: chosen }));
  }
}

/** Lines are kept as long as the answer and the name are the same, so that the chart is not drawn for nothing. */
class OverTime extends Component {
  lines({ series, kind, name }) {
    const none = series.busy.map(() => 0);
    return [{ name: "held", values: series.held[kind]?.[name] ?? none, colour: 0, dash: 0, step: true, fill: true }, { name: "due", values: series.due[kind]?.[name] ?? none, colour: 5, dash: 1, step: true }];
  }

  componentWillMount() {
    this.made = this.lines(this.props);
    this.x = this.props.series.time.slice(0, this.props.series.busy.length);
  }

  componentWillReceiveProps(next) {
    if (next.series === this.props.series && next.name === this.props.name) return;
    this.made = this.lines(next);
    this.x = next.series.time.slice(0, next.series.busy.length);
  }

  render({ name }) {
    return h(LineChart, { title: `Devices held and due: ${label(name)}`, x: this.x, time: true, lines: this.made, height: 150 });
  }
}
