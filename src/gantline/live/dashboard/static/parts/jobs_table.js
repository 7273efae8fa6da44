// The jobs of the board as a table: searched, narrowed to a stage of life, ordered by any column.

import { Component, h } from "../vendor/preact.js";
import { brief, clock, count, cut, plural } from "../format.js";
import { go } from "../route.js";
import { JobActions } from "../actions/job_actions.js";
import { RowOrder } from "./order.js";
import { StateMark } from "./state_mark.js";
import { Table, columnsFor } from "./table.js";

const STAGES = { active: "not ended", waiting: "waiting", running: "running", held: "held", ended: "ended", all: "all" };
const text = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const byKey = (a, b) => a.key - b.key;

/** How each column orders jobs. `position` is the order of the whole page: the queue, then what runs longest, then what ended last. */
const ORDERS = {
  position: (a, b) => a.rank - b.rank || (a.position ?? Infinity) - (b.position ?? Infinity) || (b.ended ?? 0) - (a.ended ?? 0) || (a.started ?? 0) - (b.started ?? 0),
  id: byKey,
  name: (a, b) => text(a.name, b.name),
  user: (a, b) => text(a.user, b.user),
  queue: (a, b) => text(a.queue, b.queue),
  state: (a, b) => a.rank - b.rank || text(a.state, b.state),
  gpus: (a, b) => a.gpus - b.gpus,
  priority: (a, b) => (a.priority ?? 0) - (b.priority ?? 0),
  since: (a, b) => sinceOf(a) - sinceOf(b),
  done: (a, b) => shareOf(a) - shareOf(b),
};

const sinceOf = (job) => (job.stage === "running" ? job.started : job.stage === "ended" ? job.ended : job.submitted) ?? 0;
const shareOf = (job) => (job.total ? job.done / job.total : -1);

export class JobsTable extends Component {
  state = { stage: "active", find: "", sort: { key: "position", down: false } };

  componentDidMount() {
    const { live, selection } = this.props.app;
    this.forget = [live.listen((what) => this.follow(what)), selection.listen(() => this.setState({}))];
    this.columns = columnsOf(() => live.board.now());
    this.order = new RowOrder({
      rows: () => [...live.board.jobs.values()],
      wanted: (job) => this.wanted(job),
      compare: (a, b) => this.compare(a, b),
    });
    this.setState({});
  }

  componentWillUnmount() {
    this.forget.forEach((forget) => forget());
  }

  follow({ board, jobs, reordered }) {
    if (board || (reordered && this.state.sort.key === "position")) this.order.again();
    else this.order.change(jobs);
    this.setState({});
  }

  wanted(job) {
    const { stage, find } = this.state;
    if (job.gone || (stage === "active" ? job.stage === "ended" : stage !== "all" && job.stage !== stage)) return false;
    return !find || `${job.id} ${job.name} ${job.user} ${job.queue} ${job.state}`.toLowerCase().includes(find);
  }

  compare(a, b) {
    const { key, down } = this.state.sort;
    const found = ORDERS[key](a, b);
    return (down ? -found : found) || byKey(a, b);
  }

  narrow(change) {
    this.setState(change, () => {
      this.order.again();
      this.setState({});
    });
  }

  sortBy = (key) => this.narrow(({ sort }) => ({ sort: { key, down: sort.key === key ? !sort.down : false } }));

  tick = (key, extend) => {
    const { selection, live: { board } } = this.props.app, { shown } = this.order;
    const from = shown.findIndex((job) => job.key === this.lastTicked), to = shown.findIndex((job) => job.key === key);
    if (extend && from >= 0 && to >= 0) shown.slice(Math.min(from, to), Math.max(from, to) + 1).forEach((job) => selection.tick(job, true));
    else selection.tick(board.jobs.get(key));
    this.lastTicked = key;
  };

  render({ app }, { stage, find, sort }) {
    if (!this.order) return null;
    const { live: { board }, selection } = app, { shown } = this.order;
    const open = (key) => board.jobs.get(key).id !== "-" && go("job", board.jobs.get(key).id);
    return h("section", { class: "jobs", "aria-label": "jobs" },
      h("div", { class: "controls" },
        h("h2", null, plural(shown.length, "job")),
        h("div", { class: "chips", role: "group", "aria-label": "which jobs" }, Object.entries(STAGES).map(([name, title]) =>
          h("button", { key: name, type: "button", "aria-pressed": stage === name ? "true" : "false", onClick: () => this.narrow({ stage: name }) }, title))),
        h("input", {
          type: "search", "aria-label": "find jobs", placeholder: "find by id, name, user, queue or state", value: find,
          onInput: (event) => this.narrow({ find: event.target.value.trim().toLowerCase() }),
        })),
      selection.ticked.size > 0 && h("div", { class: "controls chosen", role: "group", "aria-label": "chosen jobs" },
        h("strong", null, `${plural(selection.ticked.size, "job")} chosen`),
        h(JobActions, { app, jobs: selection.tickedJobs() }),
        h("button", { type: "button", class: "plain", onClick: () => selection.untick() }, "choose none")),
      h(Table, {
        order: this.order, id: (job) => job.key, columns: this.columns, sort, onSort: this.sortBy, prefix: "job", label: "jobs",
        active: selection.job?.key ?? null, onActive: (key) => selection.pickJob(board.jobs.get(key)), onOpen: open,
        chosen: app.may.has("act") || app.may.has("change_job") ? selection.ticked : null, onChoose: this.tick,
        empty: find || stage !== "active" ? "No job is like that." : "No job waits or runs.",
      }));
  }
}

function columnsOf(now) {
  const named = (job) => (job.id === "-" ? "of another user" : cut(job.name, 120));
  return columnsFor([
    { key: "position", title: "#", className: "number", cell: (job) => (job.position ? count(job.position) : "") },
    { key: "id", title: "id", cell: (job) => job.id },
    { key: "name", title: "name", cell: named },
    { key: "user", title: "user", cell: (job) => cut(job.user, 60) },
    { key: "queue", title: "queue", className: "wide", cell: (job) => cut(job.queue, 60) },
    { key: "state", title: "state", cell: (job) => h(StateMark, { state: job.state }) },
    { key: "gpus", title: "devices", className: "number", cell: (job) => (job.held && job.held !== job.gpus ? `${job.held}/${job.gpus}` : count(job.gpus)) },
    { key: "since", title: "for", className: "number", cell: (job) => forHowLong(job, now()) },
    { key: "done", title: "done", className: "number wide", cell: (job) => (job.total ? `${Math.floor((100 * job.done) / job.total)} %` : "") },
    { key: "priority", title: "priority", className: "number wide", cell: (job) => (job.priority ? String(job.priority) : "") },
  ]);
}

function forHowLong(job, now) {
  if (job.stage === "ended") return job.ended === null ? "" : clock(job.ended, now);
  const since = sinceOf(job);
  return since ? brief(now - since) : "";
}
