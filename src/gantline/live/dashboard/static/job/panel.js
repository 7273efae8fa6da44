// The chosen job beside the map: the sentence, the phases, what is expected, what is ahead, what can be done.

import { Component, h } from "../vendor/preact.js";
import { cut, plural } from "../format.js";
import { addressOf } from "../route.js";
import { JobActions } from "../actions/job_actions.js";
import { StateMark } from "../parts/state_mark.js";
import { Changes } from "./changes.js";
import { JobData } from "./data.js";
import { Phases } from "./phases.js";
import { Expected, Ladder, Sentence } from "./why.js";

export class JobPanel extends Component {
  state = { suggested: null };

  componentDidMount() {
    if (this.props.job.id !== "-") this.data = new JobData(this.props.app, this.props.job.id, () => this.setState({}));
    this.setState({});
  }

  componentWillUnmount() {
    this.data?.stop();
  }

  render({ app, job, onClose }, { suggested }) {
    const { board } = app.live, now = board.now(), { data } = this;
    const others = job.id === "-";
    const pick = (id) => board.byId.has(id) && app.selection.pickJob(board.byId.get(id));
    return h("aside", { class: "panel", "aria-label": others ? "a job of another user" : `job ${job.id}`, "data-job": job.id },
      h("div", { class: "panel-head" },
        h("h2", { class: "wrap" }, others ? "Another user's job" : h("a", { href: addressOf("job", job.id) }, `${job.id} ${cut(job.name, 120)}`)),
        h("button", { type: "button", onClick: onClose, "aria-label": "close" }, "✕")),
      h("p", { class: "quiet" }, h(StateMark, { state: job.gone ? "gone" : job.state }), ` · ${plural(job.gpus, "device")}`, others ? "" : ` · ${cut(job.user, 60)}${job.queue ? ` · ${cut(job.queue, 60)}` : ""}`),
      data && [
        h(Sentence, { job, explained: data.explained, record: data.record.value }),
        job.stage === "ended" || job.gone ? null : h(JobActions, { app, jobs: [job], suggested, onClosed: () => this.setState({ suggested: null }) }),
        h(Phases, { record: data.record.value, now }),
        job.stage !== "ended" && h(Expected, { forecast: data.forecast ?? data.explained.value?.forecast, now, state: job.state }),
        job.state === "pending" && h(Changes, { app, record: data.record.value, forecast: data.forecast, onSuggest: (change) => this.setState({ suggested: change }) }),
        h(Ladder, { explained: data.explained, now, onJob: pick }),
      ]);
  }
}
