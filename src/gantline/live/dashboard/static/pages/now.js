// Now: numbers, the map and the jobs; whatever is chosen opens beside the map and stays lit on it.

import { Component, h } from "../vendor/preact.js";
import { count, plural } from "../format.js";
import { JobPanel } from "../job/panel.js";
import { Colouring, WAYS } from "../parts/colouring.js";
import { JobsTable } from "../parts/jobs_table.js";
import { ClusterMap, describe } from "../parts/map.js";
import { NodePanel } from "../parts/node_panel.js";
import { Numbers } from "../parts/numbers.js";

export class Now extends Component {
  state = { way: "user", hover: null, category: null };

  componentWillMount() {
    const { app } = this.props;
    this.colouring = app.colouring ??= new Colouring();
    this.colouring.offer(app.live.board);
    this.drawn = 0;
    this.measure();
  }

  componentDidMount() {
    const { live, selection } = this.props.app;
    const resize = () => this.measure();
    addEventListener("resize", resize);
    this.forget = [live.listen((what) => this.follow(what)), selection.listen(() => this.setState({})), () => removeEventListener("resize", resize)];
    this.ticking = setInterval(() => Date.now() - this.drawn > 900 && this.setState({}), 1000); // waits grow although nothing changes
  }

  /** How tall the map may be; asked for seldom, because the browser has to lay the page out to answer. */
  measure() {
    this.height = Math.min(340, Math.max(120, innerHeight * 0.4));
    this.setState({});
  }

  componentDidUpdate() {
    this.drawn = Date.now();
  }

  componentWillUnmount() {
    this.forget.forEach((forget) => forget());
    clearInterval(this.ticking);
  }

  follow({ board }) {
    if (board) this.colouring.offer(this.props.app.live.board);
    document.documentElement.dataset.version = this.props.app.live.board.version;
    this.setState({});
  }

  /** What shines on the map, and a name that changes with it. */
  lit() {
    const { job } = this.props.app.selection, { way, category } = this.state;
    if (job) return [(one) => one === job, `job ${job.key}`];
    if (category) return [(one) => one[way] === category, `${way} ${category}`];
    return [null, ""];
  }

  /** What the map shows, in words: the node under the pointer, or the job that is lit. */
  words(hover) {
    const { live: { board }, selection: { job } } = this.props.app;
    if (hover !== null && hover < board.nodes.length) return describe(board, hover);
    if (!job) return "";
    const name = job.id === "-" ? "a job of another user" : `job ${job.id}`;
    return job.held ? `${name} is lit: ${plural(job.held, "device")}` : `${name} holds no device`;
  }

  pick = ({ node, job }) => {
    const { selection } = this.props.app;
    if (job) selection.pickJob(job);
    else selection.pickNode(selection.node === node.name ? "" : node.name);
  };

  render({ app }, { way, hover, category }) {
    const { live, selection } = app, { board } = live;
    const [lit, litName] = this.lit();
    const node = board.nodes.find((one) => one.name === selection.node);
    return h("div", { class: "now" },
      h("h1", { class: "hidden" }, "Now"),
      h(Numbers, { board }),
      h("div", { class: selection.job || node ? "now-top open" : "now-top" },
        h("section", { class: "map-box", "aria-label": "map" },
          h("div", { class: "controls" },
            h("label", null, "colour by", h("select", { value: way, onChange: (event) => this.setState({ way: event.target.value, category: null }) },
              Object.entries(WAYS).map(([name, title]) => h("option", { key: name, value: name }, title)))),
            h(Legend, { entries: this.colouring.legend(board, way), category, onPick: way === "user" || way === "queue" ? (name) => this.setState({ category: name === category ? null : name }) : null })),
          h(ClusterMap, { live, colouring: this.colouring, way, lit, litName, height: this.height, node: selection.node, onPick: this.pick, onHover: (place) => place !== hover && this.setState({ hover: place }) }),
          h("p", { class: "readout small" }, h("span", { class: "lit-words" }, this.words(hover)), h(Shapes))),
        selection.job && h(JobPanel, { key: selection.job.key, app, job: selection.job, onClose: () => selection.pickJob(null) }),
        node && h(NodePanel, { key: node.name, app, node, onClose: () => selection.pickNode("") })),
      h(JobsTable, { app }));
  }
}

function Legend({ entries, category, onPick }) {
  const content = (entry) => [h("span", { class: `swatch c${entry.colour}` }), h("span", { class: "name" }, entry.name === "" ? "(default)" : entry.name === "-" ? "other users" : entry.name), " ", h("span", { class: "quiet" }, count(entry.devices))];
  return h("ul", { class: "legend", "aria-label": "legend" }, entries.map((entry) => h("li", { key: entry.name },
    onPick && !entry.folded
      ? h("button", { type: "button", class: "legend-entry", "aria-pressed": entry.name === category ? "true" : "false", onClick: () => onPick(entry.name) }, content(entry))
      : h("span", { class: "legend-entry" }, content(entry)))));
}

function Shapes() {
  return h("span", { class: "shapes quiet" },
    h("span", null, h("span", { class: "sample free" }), "free"),
    h("span", null, h("span", { class: "sample crossed" }, "╳"), "cordoned"),
    h("span", null, h("span", { class: "sample notched" }, "◥"), "reserved"),
    h("span", null, "a group of squares is a node, each square a device"));
}
