// A chosen node: its state, what is on each of its devices, and what can be done to it.

import { Component, h } from "../vendor/preact.js";
import { cut } from "../format.js";
import { NodeActions } from "../actions/node_actions.js";

const STATES = { u: "up", c: "cordoned", r: "reserved" };

export class NodePanel extends Component {
  render({ app, node, onClose }) {
    const { board } = app.live;
    const devices = Array.from({ length: node.count }, (_, index) => node.first + index);
    const holder = (key) => {
      const job = board.jobs.get(key);
      if (!job || job.id === "-") return "a job of another user";
      return h("button", { type: "button", class: "plain", onClick: () => app.selection.pickJob(job) }, `${job.id} ${cut(job.name, 40)}`);
    };
    return h("aside", { class: "panel", "aria-label": `node ${node.name}` },
      h("div", { class: "panel-head" }, h("h2", null, node.name), h("button", { type: "button", onClick: onClose, "aria-label": "close" }, "✕")),
      h("p", { class: "quiet" }, `${node.type}, ${board.nodeState(node)}`),
      h(NodeActions, { app, nodes: [node] }),
      h("div", { class: "scroll" }, h("table", { class: "list" },
        h("thead", null, h("tr", null, h("th", null, "device"), h("th", null, "state"), h("th", null, "job"))),
        h("tbody", null, devices.map((at) => h("tr", { key: at },
          h("td", null, board.deviceName(at)), h("td", null, STATES[board.deviceState[at]] ?? board.deviceState[at]),
          h("td", null, board.deviceJobs[at].length ? board.deviceJobs[at].map(holder) : h("span", { class: "quiet" }, "free"))))))));
  }
}
