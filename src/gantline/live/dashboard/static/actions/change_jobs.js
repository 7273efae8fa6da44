// Change what a job is called and how it is ranked: name, priority, queue, time limit, estimate. What is left empty stays as it is.

import { Component, h } from "../vendor/preact.js";
import { cut, plural } from "../format.js";
import { Dialog } from "../parts/dialog.js";

const FIELDS = [
  { name: "name", title: "name", single: true },
  { name: "priority", title: "priority", hint: "low, normal, high or a whole number" },
  { name: "queue", title: "queue", hint: "only while it waits" },
  { name: "time_limit", title: "time limit", hint: "2h, 1-12:00:00" },
  { name: "estimate", title: "estimate", hint: "30m" },
];

export class ChangeJobs extends Component {
  state = { ...this.props.given };

  render({ app, jobs, onClose }, values) {
    const given = Object.entries(values).filter(([, value]) => String(value).trim() !== "");
    const ids = jobs.map((job) => job.id), one = jobs.length === 1;
    const changes = Object.fromEntries(given.map(([name, value]) => [name, /^-?\d+$/.test(value) && name === "priority" ? Number(value) : value]));
    const act = () => (one ? app.api.patch(`/v1/jobs/${encodeURIComponent(ids[0])}`, changes) : app.api.patch("/v1/jobs", { jobs: ids, ...changes }));
    return h(Dialog, { title: `Change ${one ? `job ${ids[0]}` : plural(jobs.length, "job")}`, verb: "Change", act, onClose, disabled: !given.length },
      h("p", { class: "wrap" }, cut(jobs.map((job) => `${job.id} ${cut(job.name, 60)}`).join(", "), 600)),
      h("p", { class: "quiet" }, "What is left empty stays as it is."),
      h("div", { class: "fields" }, FIELDS.filter((field) => one || !field.single).map((field) =>
        h("label", { key: field.name, class: "field" }, h("span", null, field.title, field.hint && h("small", { class: "quiet" }, ` ${field.hint}`)),
          h("input", { value: values[field.name] ?? "", maxLength: 1000, onInput: (event) => this.setState({ [field.name]: event.target.value }) })))));
  }
}
