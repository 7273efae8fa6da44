// Make, change and drop queues; reserve devices for a window of time, and give a window up.

import { Component, h } from "../vendor/preact.js";
import { Dialog } from "../parts/dialog.js";

const given = (text) => String(text).trim() !== "";

/** `queue`: what is there already, or null for a new one. */
export class SetQueue extends Component {
  state = { name: this.props.queue?.name ?? "", weight: String(this.props.queue?.weight ?? 1), quota: String(this.props.queue?.quota ?? ""), borrow: String(this.props.queue?.borrow ?? 0) };

  render({ app, queue, onClose }, { name, weight, quota, borrow }) {
    const path = `/v1/queues/${name.trim().split("/").map(encodeURIComponent).join("/")}`;
    const act = () => app.api.put(path, { weight: Number(weight), quota: given(quota) ? Number(quota) : null, borrow: borrow.trim() === "inf" ? "inf" : Number(borrow) });
    return h(Dialog, { title: queue ? `Change queue ${queue.name}` : "Make a queue", verb: queue ? "Change" : "Make", act, onClose, disabled: !given(name) },
      h("div", { class: "fields" },
        !queue && field("name", "names with slashes between them: research/nlp", { value: name, onInput: (event) => this.setState({ name: event.target.value }) }),
        field("weight", "its share among its neighbours", { type: "number", min: 0, step: "any", value: weight, onInput: (event) => this.setState({ weight: event.target.value }) }),
        field("quota", "devices that it is promised; empty: none", { type: "number", min: 0, value: quota, onInput: (event) => this.setState({ quota: event.target.value }) }),
        field("borrow", "devices beyond the quota; inf: no limit", { pattern: "[0-9.]*|inf", value: borrow, onInput: (event) => this.setState({ borrow: event.target.value }) })));
  }
}

export function DropQueue({ app, queue, onClose }) {
  const path = `/v1/queues/${queue.name.split("/").map(encodeURIComponent).join("/")}`;
  return h(Dialog, { title: `Drop queue ${queue.name}`, verb: "Drop", act: () => app.api.delete(path), onClose }, h("p", null, "Its jobs stay, and nothing bounds them any more."));
}

export class Reserve extends Component {
  state = { name: "", nodes: "1", hours: "1", start: "", users: "" };

  render({ app, onClose }, { name, nodes, hours, start, users }) {
    const act = () => app.api.post("/v1/reservations", {
      ...(given(name) ? { name } : {}), nodes: Number(nodes), seconds: 3600 * Number(hours), ...(given(start) ? { start: Date.parse(start) / 1000 } : {}),
      users: users.split(",").map((user) => user.trim()).filter(Boolean),
    });
    return h(Dialog, { title: "Reserve nodes", verb: "Reserve", act, onClose },
      h("div", { class: "fields" },
        field("name", "empty: one is made up", { value: name, onInput: (event) => this.setState({ name: event.target.value }) }),
        field("nodes", "", { type: "number", min: 1, required: true, value: nodes, onInput: (event) => this.setState({ nodes: event.target.value }) }),
        field("from", "empty: now", { type: "datetime-local", value: start, onInput: (event) => this.setState({ start: event.target.value }) }),
        field("hours", "", { type: "number", min: 0.01, step: "any", required: true, value: hours, onInput: (event) => this.setState({ hours: event.target.value }) }),
        field("users", "who may use them, with commas between; empty: no user, for maintenance", { value: users, onInput: (event) => this.setState({ users: event.target.value }) })));
  }
}

export function GiveUp({ app, name, onClose }) {
  return h(Dialog, { title: `Give up window ${name}`, verb: "Give up", act: () => app.api.delete(`/v1/reservations/${encodeURIComponent(name)}`), onClose }, h("p", null, "Its devices are free for everything again."));
}

function field(title, hint, props) {
  return h("label", { class: "field" }, h("span", null, title, hint && h("small", { class: "quiet" }, ` ${hint}`)), h("input", props));
}
