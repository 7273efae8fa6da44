// What can be asked of jobs, one or several at once. What this role may not do is not offered.

import { Component, h } from "../vendor/preact.js";
import { cut, plural } from "../format.js";
import { Dialog } from "../parts/dialog.js";
import { ChangeJobs } from "./change_jobs.js";

const REQUESTS = [
  { name: "cancel", title: "Cancel", fits: (job) => job.stage !== "ended", says: "Ends for good; work that is not saved is lost." },
  { name: "hold", title: "Hold", fits: (job) => job.stage === "waiting" || job.stage === "running", says: "Waits until released; what runs is stopped." },
  { name: "release", title: "Release", fits: (job) => job.stage === "held", says: "May start again." },
  { name: "requeue", title: "Requeue", fits: (job) => job.stage === "running", says: "Stopped, and back to waiting." },
  { name: "save", title: "Save", fits: (job) => job.stage === "running", says: "Saves its work and goes on." },
  { name: "resize", title: "Resize", fits: (job) => job.stage !== "ended", says: "Gets this many devices now, or waits for them." },
];

export function sendRequest(app, name, ids, more = {}) {
  return app.api.post("/v1/requests", { action: name, jobs: ids, ...more });
}

/** Buttons for these jobs; `suggested` ({name, gpus}) opens one of them with its fields filled in. */
export class JobActions extends Component {
  state = { open: null };

  componentDidUpdate(before) {
    const { suggested } = this.props;
    if (suggested && suggested !== before.suggested) this.setState({ open: suggested.name });
  }

  render({ app, jobs, suggested, onClosed }, { open }) {
    const close = () => {
      this.setState({ open: null });
      onClosed?.();
    };
    const request = REQUESTS.find((one) => one.name === open);
    const asked = app.may.has("act") ? REQUESTS.filter((one) => jobs.some(one.fits)) : [];
    const changes = app.may.has("change_job") && jobs.some((job) => job.stage !== "ended");
    return h("span", { class: "actions" },
      asked.map((one) => h("button", { key: one.name, type: "button", onClick: () => this.setState({ open: one.name }) }, one.title)),
      changes && h("button", { type: "button", onClick: () => this.setState({ open: "change" }) }, "Change"),
      request && h(RequestDialog, { app, request, jobs: jobs.filter(request.fits), gpus: suggested?.gpus, onClose: close }),
      open === "change" && h(ChangeJobs, { app, jobs: jobs.filter((job) => job.stage !== "ended"), given: suggested?.given, onClose: close }));
  }
}

class RequestDialog extends Component {
  state = { gpus: this.props.gpus ?? this.props.jobs[0]?.gpus ?? 1 };

  render({ app, request, jobs, onClose }, { gpus }) {
    const ids = jobs.map((job) => job.id), one = jobs.length === 1;
    const title = `${request.title} ${one ? `job ${ids[0]}` : plural(jobs.length, "job")}`;
    const act = () => sendRequest(app, request.name, ids, request.name === "resize" ? { gpus: Number(gpus) } : {});
    return h(Dialog, { title, verb: request.title, act, onClose },
      h("p", { class: "wrap" }, cut(jobs.map((job) => `${job.id} ${cut(job.name, 60)}`).join(", "), 600)),
      h("p", { class: "quiet" }, request.says),
      request.name === "resize" && h("label", null, "devices", h("input", {
        type: "number", min: 1, max: 100000, required: true, value: gpus, onInput: (event) => this.setState({ gpus: event.target.value }),
      })));
  }
}
