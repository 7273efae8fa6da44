// Job: first why it is where it is, then its life, what is expected and ahead, its training, its output, where it ran.

import { Component, h } from "../vendor/preact.js";
import { clock, count, cut, duration, plural } from "../format.js";
import { addressOf, go } from "../route.js";
import { JobActions } from "../actions/job_actions.js";
import { Changes } from "../job/changes.js";
import { Curves } from "../job/curves.js";
import { JobData } from "../job/data.js";
import { Log } from "../job/log.js";
import { Phases } from "../job/phases.js";
import { Starts } from "../job/starts.js";
import { Expected, Ladder, Sentence } from "../job/why.js";
import { stageOf } from "../live/board.js";
import { Refused } from "../parts/refused.js";
import { StateMark } from "../parts/state_mark.js";

export class JobPage extends Component {
  state = { suggested: null };

  componentDidMount() {
    this.data = new JobData(this.props.app, this.props.route.what, () => this.setState({}));
    this.ticking = setInterval(() => this.setState({}), 1000);
    this.setState({});
  }

  componentWillUnmount() {
    this.data.stop();
    clearInterval(this.ticking);
  }

  render({ app, route }, { suggested }) {
    const { data } = this, id = route.what;
    if (!data?.record.value) return data?.record.error ? h("div", null, h("h1", null, `Job ${cut(id, 80)}`), h(Refused, { error: data.record.error })) : h("p", { class: "quiet", role: "status" }, "Fetching the job …");
    const record = data.record.value, now = app.live.board.now();
    const job = { ...record, stage: stageOf(record.state) };
    const forecast = data.forecast ?? data.explained.value?.forecast;
    return h("div", { class: "job-page", "data-job": record.id },
      h("p", { class: "small" }, h("a", { href: "#/now", onClick: () => app.live.board.byId.has(id) && app.selection.pickJob(app.live.board.byId.get(id)) }, "show on the map")),
      h("h1", null, `${record.id} ${cut(record.name, 300)}`),
      h("p", { class: "quiet" }, h(StateMark, { state: record.state }), ` · ${sizes(record)} · ${cut(record.user, 60)}${record.queue ? ` · queue ${cut(record.queue, 60)}` : ""}${record.priority ? ` · priority ${record.priority}` : ""}`),
      h(Sentence, { job, explained: data.explained, record }),
      job.stage !== "ended" && h("p", null, h(JobActions, { app, jobs: [job], suggested, onClosed: () => this.setState({ suggested: null }) })),
      data.record.error && h(Refused, { error: data.record.error }),
      h("div", { class: "two" },
        h("div", { class: "stack" },
          h(Phases, { record, now }),
          job.stage !== "ended" && h(Expected, { forecast, now, state: record.state }),
          record.state === "pending" && h(Changes, { app, record, forecast: data.forecast, onSuggest: (change) => this.setState({ suggested: change }) }),
          h(Ladder, { explained: data.explained, now, onJob: (other) => go("job", other) }),
          h(Curves, { app, id, running: job.stage === "running" })),
        h("div", { class: "stack" },
          h(Starts, { record, now }),
          h(Facts, { record, now }))),
      record.epoch ? h(Log, { app, id }) : h("p", { class: "quiet" }, "It has not started, so there is no output."));
  }
}

function sizes({ gpus, min_gpus: least, max_gpus: most, devices }) {
  const range = least !== most ? ` (${least} to ${most})` : "";
  return `${devices.length && devices.length !== gpus ? `holds ${devices.length} of ` : ""}${plural(gpus, "device")}${range}`;
}

function Facts({ record, now }) {
  const { progress } = record;
  const rows = [
    ["command", h("code", { class: "wrap" }, cut([].concat(record.spec?.run ?? []).join(" "), 2000))],
    ["submitted", clock(record.submitted, now)],
    ["restarts", `${count(record.restarts)}${record.failures ? `, ${plural(record.failures, "failure")}` : ""}${record.resizes ? `, ${plural(record.resizes, "resize")}` : ""}`],
    ["estimate", record.estimate == null ? "none" : duration(record.estimate)],
    progress?.total ? ["progress", `${count(progress.done)} of ${count(progress.total)}`] : null,
    record.array ? ["array", h("a", { href: addressOf("now") }, record.array)] : null,
    Object.keys(record.labels ?? {}).length ? ["labels", cut(Object.entries(record.labels).map(([key, value]) => `${key}=${value}`).join(", "), 500)] : null,
    record.lost_output ? ["lost output", `${count(record.lost_output)} bytes could not be written`] : null,
  ].filter(Boolean);
  return h("section", { "aria-label": "facts" }, h("h2", null, "Facts"),
    h("table", { class: "facts" }, h("tbody", null, rows.map(([name, value]) => h("tr", { key: name }, h("th", { scope: "row" }, name), h("td", null, value))))));
}
