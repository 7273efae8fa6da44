// Cordon, drain and uncordon nodes, for roles that may.

import { Component, h } from "../vendor/preact.js";
import { cut, plural } from "../format.js";
import { Dialog } from "../parts/dialog.js";

const ACTIONS = {
  cordon: { title: "Cordon", says: "No job starts here from now on; what runs goes on." },
  drain: { title: "Drain", says: "No job starts here from now on, and what runs is stopped and waits again." },
  uncordon: { title: "Uncordon", says: "Jobs may start here again." },
};

export class NodeActions extends Component {
  state = { open: "" };

  render({ app, nodes }, { open }) {
    if (!app.may.has("change_nodes") || !nodes.length) return null;
    const states = nodes.map((node) => app.live.board.nodeState(node));
    const fitting = Object.keys(ACTIONS).filter((name) => (name === "uncordon" ? states.some((state) => state !== "up") : states.some((state) => state !== "cordoned")));
    const names = nodes.map((node) => node.name);
    const close = () => this.setState({ open: "" });
    return h("span", { class: "actions" },
      fitting.map((name) => h("button", { key: name, type: "button", onClick: () => this.setState({ open: name }) }, ACTIONS[name].title)),
      open && h(Dialog, {
        title: `${ACTIONS[open].title} ${names.length === 1 ? names[0] : plural(names.length, "node")}`, verb: ACTIONS[open].title, onClose: close,
        act: () => app.api.post("/v1/nodes", { nodes: names, action: open }),
      }, h("p", { class: "wrap" }, cut(names.join(", "), 600)), h("p", { class: "quiet" }, ACTIONS[open].says)));
  }
}
