// A table of any length: only the rows in sight are elements. One row is active (arrow keys move it), any number may be chosen.

import { Component, createRef, h } from "../vendor/preact.js";

const ROW = 26; // pixels; style/parts.css says the same
const MORE = 3; // rows beyond both edges, so that a small scroll shows no gap

/**
 * Props: `order` (a RowOrder; its rows are no property of their own, because Preact keeps some older properties alive), `id(row)`, `columns` (of `columnsFor`: {key, title, cell(row), className}), `sort` ({key, down}),
 * `onSort(key)`, `active` (an id), `onActive(id)`, `chosen` (a Set of ids, or null where nothing can be chosen), `onChoose(id, extend)`,
 * `label`, `empty` (what is said when there is nothing).
 */
export class Table extends Component {
  body = createRef();
  state = { top: 0, height: 400 };

  componentDidMount() {
    this.watch = new ResizeObserver(() => this.measure());
    this.watch.observe(this.body.current);
    this.measure();
  }

  componentWillUnmount() {
    this.watch.disconnect();
  }

  measure() {
    const { scrollTop: top, clientHeight: height } = this.body.current;
    if (top !== this.state.top || height !== this.state.height) this.setState({ top, height });
  }

  place() {
    return this.props.order.shown.findIndex((row) => this.props.id(row) === this.props.active);
  }

  move(to) {
    const { order: { shown: rows }, id, onActive } = this.props;
    if (!rows.length) return;
    const place = Math.max(0, Math.min(rows.length - 1, to));
    const body = this.body.current, bottom = (place + 2) * ROW; // the head covers one row
    if (place * ROW < body.scrollTop) body.scrollTop = place * ROW;
    else if (bottom > body.scrollTop + body.clientHeight) body.scrollTop = bottom - body.clientHeight;
    onActive(id(rows[place]));
  }

  onKey = (event) => {
    const page = Math.max(1, Math.floor(this.state.height / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page };
    const { active, chosen, onChoose, onOpen, order } = this.props;
    if (event.key in steps) this.move((this.place() < 0 && steps[event.key] < 0 ? 0 : this.place()) + steps[event.key]);
    else if (event.key === "Home") this.move(0);
    else if (event.key === "End") this.move(order.shown.length - 1);
    else if (event.key === " " && chosen && active != null) onChoose(active, event.shiftKey);
    else if (event.key === "Enter" && active != null && onOpen) onOpen(active);
    else return;
    event.preventDefault();
  };

  /** The id of the row that an event is about: rows have no listeners of their own, because they are made anew all the time. */
  rowOf(event) {
    const element = event.target.closest("[data-place]");
    return element ? this.props.id(this.props.order.shown[Number(element.dataset.place)]) : undefined;
  }

  onClick = (event) => {
    const name = this.rowOf(event), { chosen, onActive, onChoose } = this.props;
    if (name === undefined) return;
    const ticks = event.target.closest(".c-choose") || event.ctrlKey || event.metaKey || event.shiftKey;
    if (chosen && ticks) onChoose(name, event.shiftKey);
    else onActive(name);
  };

  onDoubleClick = (event) => {
    const name = this.rowOf(event);
    if (name !== undefined) this.props.onOpen?.(name);
  };

  render({ order: { shown: rows }, id, columns, sort, onSort, active, chosen, label, empty, prefix = "row" }, { top, height }) {
    const first = Math.max(0, Math.floor(top / ROW) - MORE);
    const last = Math.min(rows.length, Math.ceil((top + height) / ROW) + MORE);
    const inSight = [];
    for (let place = first; place < last; place++) {
      const row = rows[place], name = id(row);
      inSight.push(h(Row, { key: place % (last - first), row, name, place, columns, chosen: chosen ? chosen.has(name) : null, active: name === active, prefix }));
    }
    const there = inSight.some((one) => one.props.active);
    return h("div", {
      class: "grid", role: "grid", ref: this.body, tabIndex: 0, onScroll: () => this.measure(), onKeyDown: this.onKey, onClick: this.onClick, onDblClick: this.onDoubleClick, "aria-label": label,
      "aria-rowcount": rows.length + 1, "aria-multiselectable": chosen ? "true" : null, "aria-activedescendant": there ? `${prefix}-${active}` : null,
    },
      h("div", { class: "grid-head", role: "rowgroup" },
        h("div", { class: "grid-row", role: "row", "aria-rowindex": 1 },
          chosen && h("div", { class: "c-choose", role: "columnheader" }, h("span", { class: "hidden" }, "chosen")),
          columns.map((column) => h(Head, { key: column.key, column, sort, onSort })))),
      rows.length
        ? h("div", { class: "grid-space", role: "rowgroup", style: { height: `${rows.length * ROW}px` } }, inSight)
        : h("div", { role: "rowgroup" }, h("div", { role: "row" }, h("div", { role: "gridcell", class: "empty" }, empty))));
  }
}

function Head({ column, sort, onSort }) {
  const on = sort && sort.key === column.key;
  const order = on ? (sort.down ? "descending" : "ascending") : null;
  const content = h("button", { type: "button", onClick: () => onSort(column.key) }, column.title);
  return h("div", { class: column.cellClass, role: "columnheader", "aria-sort": order }, content);
}

class Row extends Component {
  render({ row, name, place, columns, chosen, active, prefix }) {
    return h("div", {
      id: `${prefix}-${name}`, class: active ? "grid-row active" : "grid-row", role: "row", "aria-rowindex": place + 2,
      "aria-selected": active || chosen ? "true" : "false", "data-place": place, style: { transform: `translateY(${place * ROW}px)` },
    },
      chosen === null ? null : h("div", { class: "c-choose", role: "gridcell" }, h("input", { type: "checkbox", tabIndex: -1, checked: chosen, "aria-label": `choose ${name}` })),
      columns.map((column) => h("div", { key: column.key, class: column.cellClass, role: "gridcell" }, column.cell(row))));
  }
}

/** Columns with what their cells are called in the style sheet, worked out once. */
export const columnsFor = (columns) => columns.map((column) => ({ ...column, cellClass: `c-${column.key} ${column.className ?? ""}`.trim() }));
