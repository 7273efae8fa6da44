// A sweep as a grid: policies down, loads (or whatever was varied) across, one metric at a time; a cell's depth is its value.

import { Component, h } from "../vendor/preact.js";
import { cut, number } from "../format.js";
import { spell } from "./measures.js";

export class SweepGrid extends Component {
  state = { metric: "" };

  render({ found }, { metric }) {
    const [down, across = ""] = found.axes;
    const metrics = Object.keys(found.rows[0] ?? {}).filter((key) => !found.axes.includes(key) && !/_(low|high)$/.test(key) && found.rows.some((row) => typeof row[key] === "number"));
    const shown = metrics.includes(metric) ? metric : metrics.includes("jct_mean") ? "jct_mean" : metrics[0];
    if (!shown) return h("p", { class: "empty" }, "This sweep holds no finished run.");
    const ofAxis = (axis) => [...new Set(found.rows.map((row) => row[axis]))];
    const columns = across ? ofAxis(across) : [""], lines = ofAxis(down);
    const values = found.rows.map((row) => row[shown]).filter((value) => Number.isFinite(value));
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const unit = found.units?.[shown] ?? (/jct|wait|makespan/.test(shown) ? "s" : "");
    const cell = (line, column) => {
      const rows = found.rows.filter((row) => row[down] === line && (!across || row[across] === column)), given = rows.map((row) => row[shown]).filter((value) => Number.isFinite(value));
      if (!given.length) return h("td", { key: String(column), class: "quiet" }, "–");
      const mean = given.reduce((sum, value) => sum + value, 0) / given.length, best = mean === low;
      const [from, to] = rows.length === 1 ? [rows[0][`${shown}_low`], rows[0][`${shown}_high`]] : [Math.min(...given), Math.max(...given)];
      return h("td", { key: String(column), class: "heat", "data-value": mean },
        h("span", { class: "depth", "aria-hidden": "true", style: { width: `${high > low ? 6 + (94 * (mean - low)) / (high - low) : 50}%` } }),
        h("span", { class: "heat-value" }, h(best ? "strong" : "span", null, spell(mean, unit)), from != null && from !== to ? h("small", { class: "quiet" }, ` ${spell(from, unit)} to ${spell(to, unit)}`) : null));
    };
    return h("section", { class: "stack", "aria-label": "sweep" },
      (found.lines ?? []).map((line) => h("p", { key: line, class: "sentence" }, cut(line, 600))),
      h("div", { class: "controls" }, h("label", null, "metric", h("select", { value: shown, onChange: (event) => this.setState({ metric: event.target.value }) }, metrics.map((one) => h("option", { key: one, value: one }, one))))),
      h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "grid" }, h("table", { class: "list sweep" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, across ? `${down} \\ ${across}` : down), columns.map((column) => h("th", { key: String(column), scope: "col" }, typeof column === "number" ? number(column) : String(column))))),
        h("tbody", null, lines.map((line) => h("tr", { key: String(line) }, h("th", { scope: "row" }, cut(String(line), 40)), columns.map((column) => cell(line, column))))))));
  }
}
