// The map of nodes and devices: a canvas that follows the board, with a pointer and a keyboard.

import { Component, createRef, h } from "../vendor/preact.js";
import { plural } from "../format.js";
import { hit, layOut } from "./map_layout.js";
import { MapPainter } from "./map_paint.js";
import { onTheme, themeColours } from "./palette.js";

/**
 * Props: `live`, `colouring`, `way`, `lit` (a predicate of jobs, or null), `litName` (changes with what is lit), `height` (what it should not
 * exceed), `node` (the chosen one's name), `onPick({node, device, job})`, `onHover(place or null)`.
 */
export class ClusterMap extends Component {
  canvas = createRef();
  box = createRef();
  state = { cursor: -1, said: "" };

  componentDidMount() {
    this.painter = new MapPainter(this.canvas.current);
    this.forget = [this.props.live.listen((what) => this.follow(what)), onTheme(() => this.repaint(true))];
    this.watch = new ResizeObserver(() => this.box.current.clientWidth !== this.width && this.repaint(true));
    this.watch.observe(this.box.current);
    this.repaint(true);
  }

  componentWillUnmount() {
    this.forget.forEach((forget) => forget());
    this.watch.disconnect();
  }

  componentDidUpdate(before) {
    const { way, litName, node, height } = this.props;
    if (before.way !== way || before.litName !== litName || before.node !== node || before.height !== height) this.repaint(before.height !== height);
  }

  follow({ board, devices }) {
    if (board) return this.repaint(true);
    if (!devices.length) return undefined;
    const { nodeOf } = this.props.live.board;
    this.painter.some(devices, (device) => nodeOf[device], this.look());
    return this.frames();
  }

  look() {
    const { live: { board }, colouring, way, lit } = this.props;
    const chosen = board.nodes.find((node) => node.name === this.props.node);
    return (device) => {
      const keys = board.deviceJobs[device];
      let shine = null;
      if (lit) shine = keys.some((key) => board.jobs.has(key) && lit(board.jobs.get(key)));
      else if (chosen) shine = device >= chosen.first && device < chosen.first + chosen.count ? null : false;
      return { category: colouring.category(board, way, device), state: board.deviceState[device], lit: shine };
    };
  }

  repaint(anew = false) {
    const { board } = this.props.live;
    if (anew) {
      this.width = this.box.current.clientWidth;
      this.painter.prepare(layOut(board.nodes, this.width, this.props.height), themeColours());
    }
    this.painter.all(this.look());
    this.frames();
  }

  frames() {
    const { live: { board }, node } = this.props;
    const place = board.nodes.findIndex((one) => one.name === node);
    if (place >= 0) this.painter.cursor(place);
    if (this.state.cursor >= 0 && this.state.cursor < board.nodes.length) this.painter.cursor(this.state.cursor);
  }

  at(event) {
    const box = this.canvas.current.getBoundingClientRect();
    return hit(this.painter.layout, event.clientX - box.left, event.clientY - box.top);
  }

  onMove = (event) => {
    const found = this.at(event);
    this.props.onHover(found ? found.place : null);
  };

  onClick = (event) => {
    const found = this.at(event);
    if (found) this.pick(found.place, found.index);
  };

  pick(place, index) {
    const { live: { board }, onPick } = this.props;
    const node = board.nodes[place];
    const keys = index >= 0 ? board.deviceJobs[node.first + index] : [];
    onPick({ node, job: keys.length ? board.jobs.get(keys[0]) : null });
  }

  onKey = (event) => {
    const { across } = this.painter.layout, { nodes } = this.props.live.board;
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across };
    const { cursor } = this.state;
    if (event.key in steps) this.point(cursor < 0 ? 0 : Math.max(0, Math.min(nodes.length - 1, cursor + steps[event.key])));
    else if (event.key === "Home") this.point(0);
    else if (event.key === "End") this.point(nodes.length - 1);
    else if ((event.key === "Enter" || event.key === " ") && cursor >= 0) this.pick(cursor, -1);
    else return;
    event.preventDefault();
  };

  point(cursor) {
    this.setState({ cursor, said: describe(this.props.live.board, cursor) }, () => this.repaint());
    this.props.onHover(cursor);
  }

  render({ live: { board } }, { said }) {
    const name = `map of ${plural(board.nodes.length, "node")} and ${plural(board.deviceState.length, "device")}; arrow keys move, Enter chooses a node`;
    return h("div", { class: "map", ref: this.box },
      h("canvas", {
        ref: this.canvas, tabIndex: 0, role: "application", "aria-label": name, onMouseMove: this.onMove, onMouseLeave: () => this.props.onHover(null),
        onClick: this.onClick, onKeyDown: this.onKey, onBlur: () => this.setState({ cursor: -1 }, () => this.repaint()),
      }),
      h("span", { class: "hidden", "aria-live": "polite" }, said));
  }
}

/** A node in words. */
export function describe(board, place) {
  const node = board.nodes[place], jobs = board.jobsOn(node);
  let busy = 0;
  for (let at = node.first; at < node.first + node.count; at++) busy += board.deviceJobs[at].length > 0;
  const state = board.nodeState(node), names = jobs.slice(0, 3).map((job) => (job.id === "-" ? "another user's job" : `${job.id} (${job.user})`));
  const more = jobs.length > 3 ? ` and ${jobs.length - 3} more` : "";
  return [node.name, node.type, `${busy} of ${node.count} busy`, state === "up" ? "" : state, names.length ? `jobs ${names.join(", ")}${more}` : ""].filter(Boolean).join(" · ");
}
