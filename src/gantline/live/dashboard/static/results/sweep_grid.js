// A sweep as a grid: policies down, loads (or whatever was varied) across, one metric at a time. A bar is as long as its value; where a case was
// repeated, the cell has the mean and the range; the best of each column is bold.

import { Component, h } from "../vendor/preact.js";
import { cut, number } from "../format.js";
import { bestOf, speller } from "./measures.js";

export class SweepGrid extends Component {
  state = { metric: "" };

  render({ found }, { metric }) {
    const [down, across = ""] = found.axes;
    const metrics = found.metrics.filter(({ key }) => found.rows.some((row) => Number.isFinite(row[key])));
    const { key: shown, unit, better } = metrics.find((one) => one.key === metric) ?? metrics.find((one) => one.key === "jct_mean") ?? metrics[0] ?? {};
    if (!shown) return h("p", { class: "empty" }, "This sweep holds no finished run.");
    const ofAxis = (axis) => [...new Set(found.rows.map((row) => row[axis]))];
    const columns = across ? ofAxis(across) : [""], lines = ofAxis(down);
    const values = found.rows.map((row) => row[shown]).filter((value) => Number.isFinite(value));
    const [low, high] = [Math.min(...values), Math.max(...values)], spelled = speller(unit, values);
    const cells = new Map(lines.flatMap((line) => columns.map((column) => [`${line}\n${column}`, found.rows.filter((row) => row[down] === line && (!across || row[across] === column)).map((row) => row[shown]).filter((value) => Number.isFinite(value))])));
    const mean = (given) => given.reduce((sum, value) => sum + value, 0) / given.length;
    const best = new Map(columns.map((column) => [column, bestOf(better, lines.map((line) => mean(cells.get(`${line}\n${column}`))))]));
    const cell = (line, column) => {
      const given = cells.get(`${line}\n${column}`), value = mean(given);
      if (!given.length) return h("td", { key: String(column), class: "quiet" }, "not finished");
      return h("td", { key: String(column), class: "heat", "data-value": value },
        h("span", { class: "depth", "aria-hidden": "true", style: { width: `${high > low ? 6 + (94 * (value - low)) / (high - low) : 50}%` } }),
        h("span", { class: "heat-value" }, h(value === best.get(column) ? "strong" : "span", null, spelled(value)), given.length > 1 && h("small", { class: "quiet" }, ` ${spelled(Math.min(...given))} to ${spelled(Math.max(...given))}`)));
    };
    return h("section", { class: "stack", "aria-label": "sweep" },
      (found.lines ?? []).map((line) => h("p", { key: line, class: "sentence" }, cut(line, 600))),
      h("div", { class: "controls" }, h("label", null, "metric", h("select", { value: shown, onChange: (event) => this.setState({ metric: event.target.value }) }, metrics.map((one) => h("option", { key: one.key, value: one.key }, one.label))))),
      h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "grid" }, h("table", { class: "list sweep" },
        h("thead", null, h("tr", null, h("th", { scope: "col" }, across ? `${down} \\ ${across}` : down), columns.map((column) => h("th", { key: String(column), scope: "col" }, typeof column === "number" ? number(column) : String(column))))),
        h("tbody", null, lines.map((line) => h("tr", { key: String(line) }, h("th", { scope: "row" }, cut(String(line), 40)), columns.map((column) => cell(line, column))))))));
  }
}
