// Queues and users: the share that each holds beside the share that is due to it, over the last minute and over time; queues and windows to change.

import { Component, h } from "../vendor/preact.js";
import { clock, count, cut } from "../format.js";
import { DropQueue, GiveUp, Reserve, SetQueue } from "../actions/queue_dialogs.js";
import { Loader } from "../parts/loader.js";
import { Refused } from "../parts/refused.js";
import { Shares } from "../parts/shares.js";

const PAUSE = 10_000; // milliseconds between looks
const WINDOWS = [["1 h", 3600], ["24 h", 86_400], ["7 d", 7 * 86_400]];
const LATELY = 60; // seconds that count as now

export class Queues extends Component {
  state = { open: null, seconds: 3600 };

  componentDidMount() {
    this.found = new Loader(() => this.setState({}));
    this.look();
    this.ticking = setInterval(() => this.look(), PAUSE);
  }

  componentWillUnmount() {
    clearInterval(this.ticking);
    this.found.stop();
  }

  look() {
    const { api, live } = this.props.app, to = live.board.now();
    this.found.load(async (signal) => {
      const [{ queues }, { reservations }, series, now] = await Promise.all([
        api.get("/v1/queues", {}, signal),
        api.get("/v1/reservations", {}, signal),
        api.get("/v1/series", { from: to - this.state.seconds, to, width: 240 }, signal),
        api.get("/v1/series", { from: to - LATELY, to, width: 1 }, signal),
      ]);
      return { queues, reservations, series, now };
    });
  }

  render({ app }, { open }) {
    const { value, error } = this.found ?? {};
    const close = (done) => {
      this.setState({ open: null });
      if (done) this.look();
    };
    const show = (kind, what) => this.setState({ open: { kind, what } });
    return h("div", { class: "queues-page stack" },
      h("h1", null, "Queues and users"),
      error && h(Refused, { error }),
      value && h("div", { class: "chips", role: "group", "aria-label": "window of the charts" }, WINDOWS.map(([title, seconds]) =>
        h("button", { key: title, type: "button", "aria-pressed": seconds === this.state.seconds ? "true" : "false", onClick: () => this.setState({ seconds }, () => this.look()) }, title))),
      value && h("div", { class: "halves" }, ["queue", "user"].map((kind) => h(Shares, { key: kind, ...value, kind, title: kind === "queue" ? "Queues" : "Users" }))),
      value && h(QueueList, { app, queues: value.queues, show }),
      value && h(Windows, { app, windows: value.reservations, show }),
      open?.kind === "set" && h(SetQueue, { app, queue: open.what, onClose: close }),
      open?.kind === "drop" && h(DropQueue, { app, queue: open.what, onClose: close }),
      open?.kind === "reserve" && h(Reserve, { app, onClose: close }),
      open?.kind === "give-up" && h(GiveUp, { app, name: open.what, onClose: close }));
  }
}

function QueueList({ app, queues, show }) {
  const may = app.may.has("set_queue");
  const states = (jobs) => Object.entries(jobs).map(([state, many]) => `${count(many)} ${state}`).join(", ") || "none";
  return h("section", { "aria-label": "limits of queues" },
    h("div", { class: "controls" }, h("h2", null, "Limits"), may && h("button", { type: "button", onClick: () => show("set", null) }, "Make a queue")),
    h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "limits of each queue" }, h("table", { class: "list" },
      h("thead", null, h("tr", null, ["queue", "weight", "quota", "borrow", "devices", "jobs", ...(may ? ["change"] : [])].map((title) => h("th", { key: title, scope: "col" }, title)))),
      h("tbody", null, queues.map((queue) => h("tr", { key: queue.name },
        h("td", { title: cut(queue.name, 500) }, queue.name === "" ? "(default)" : cut(queue.name, 60)), h("td", null, queue.weight), h("td", null, queue.quota ?? "none"), h("td", null, queue.borrow === "inf" ? "no limit" : queue.borrow ?? ""), h("td", null, count(queue.gpus)), h("td", null, states(queue.jobs)),
        may && h("td", null, queue.name !== "" && h("span", { class: "actions" },
          h("button", { type: "button", onClick: () => show("set", queue) }, "Change"), h("button", { type: "button", onClick: () => show("drop", queue) }, "Drop")))))))));
}

function Windows({ app, windows, show }) {
  return h("section", { "aria-label": "reserved windows" },
    h("div", { class: "controls" }, h("h2", null, "Reserved windows"), app.may.has("reserve") && h("button", { type: "button", onClick: () => show("reserve", null) }, "Reserve nodes")),
    windows.length === 0
      ? h("p", { class: "quiet" }, "None.")
      : h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "windows" }, h("table", { class: "list" },
        h("thead", null, h("tr", null, ["name", "state", "from", "to", "places", "for", "change"].map((title) => h("th", { key: title, scope: "col" }, title)))),
        h("tbody", null, windows.map((one) => h("tr", { key: one.name },
          h("td", null, one.name), h("td", null, one.state), h("td", null, clock(one.start)), h("td", null, clock(one.end)), h("td", { title: cut(one.places.join(", "), 1000) }, cut(one.places.join(", "), 40)),
          h("td", null, cut([...one.users, ...one.queues].join(", "), 60) || "no user"), h("td", null, app.may.has("cancel_reservation") && h("button", { type: "button", onClick: () => show("give-up", one.name) }, "Give up"))))))));
}
