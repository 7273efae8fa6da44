// Submit: a form whose specification can be checked first (what would become of it now), then sent once.

import { Component, h } from "../vendor/preact.js";
import { count, cut, plural } from "../format.js";
import { addressOf } from "../route.js";
import { Refused } from "../parts/refused.js";

const FIELDS = [
  { name: "run", title: "command", hint: "split into words; for a pipe write sh -c \"…\"", wide: true },
  { name: "name", title: "name" },
  { name: "accelerators", title: "devices", hint: "4, 2:8 or h100:8" },
  { name: "queue", title: "queue" },
  { name: "priority", title: "priority", hint: "low, normal, high or a number" },
  { name: "estimate", title: "estimate", hint: "30m, 2h" },
  { name: "time", title: "time limit", hint: "1-12:00:00" },
  { name: "array", title: "array", hint: "0-9%4" },
  { name: "workdir", title: "folder", hint: "where it runs" },
];
const BLANK = { run: "", name: "", accelerators: "1", queue: "", priority: "", estimate: "", time: "", array: "", workdir: "", more: "" };

/** The specification that the fields say; `more` is JSON with any other keys of a job file. */
export function specOf(fields) {
  const has = (name) => fields[name].trim() !== "";
  const more = has("more") ? JSON.parse(fields.more) : {};
  if (typeof more !== "object" || more === null || Array.isArray(more)) throw new SyntaxError("it is not an object");
  const plain = ["run", "name", "queue", "estimate", "workdir", "array"].filter(has).map((name) => [name, fields[name].trim()]);
  return {
    ...more,
    ...Object.fromEntries(plain),
    ...(has("priority") ? { priority: /^-?\d+$/.test(fields.priority.trim()) ? Number(fields.priority) : fields.priority.trim() } : {}),
    ...(has("accelerators") ? { resources: { ...more.resources, accelerators: fields.accelerators.trim() } } : {}),
    ...(has("time") ? { limits: { ...more.limits, time: fields.time.trim() } } : {}),
  };
}

/** Fields filled in from a specification, for a job like another one. */
export function fieldsOf({ run, name, queue, estimate, workdir, priority, resources = {}, limits = {}, ...more }) {
  const words = Array.isArray(run) ? run.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ") : run;
  const { accelerators, ...otherResources } = resources, { time, ...otherLimits } = limits;
  const rest = { ...more, ...(Object.keys(otherResources).length ? { resources: otherResources } : {}), ...(Object.keys(otherLimits).length ? { limits: otherLimits } : {}) };
  const text = (value) => (value == null ? "" : String(value));
  return {
    ...BLANK, run: text(words), name: text(name), queue: text(queue), estimate: text(estimate), workdir: text(workdir), priority: text(priority),
    accelerators: text(accelerators), time: text(time), more: Object.keys(rest).length ? JSON.stringify(rest, null, 2) : "",
  };
}

export class Submit extends Component {
  state = { fields: BLANK, checked: null, error: null, ids: null, busy: false };

  componentWillMount() {
    const { app } = this.props;
    if (app.draft) this.setState({ fields: fieldsOf(app.draft) });
    app.draft = null;
    this.key = crypto.randomUUID();
  }

  set(name, value) {
    this.key = crypto.randomUUID(); // another job, not the same one sent again
    this.setState({ fields: { ...this.state.fields, [name]: value }, checked: null, error: null, ids: null });
  }

  async send(dry) {
    let spec;
    try {
      spec = specOf(this.state.fields);
    } catch (error) {
      this.setState({ error: { what: `the other keys are not JSON: ${error.message}`, where: "more" } });
      return;
    }
    this.setState({ busy: true, error: null });
    const { api } = this.props.app;
    try {
      const found = await api.post(`/v1/jobs${dry ? "?dry_run=true" : ""}`, spec, dry ? {} : { "Idempotency-Key": this.key });
      this.setState(dry ? { checked: found, busy: false } : { ids: found.ids, checked: null, busy: false });
      if (!dry) this.key = crypto.randomUUID();
    } catch (error) {
      if (error.status === undefined) throw error;
      this.setState({ error, busy: false });
    }
  }

  render(_, { fields, checked, error, ids, busy }) {
    const input = ({ name, title, hint, wide }) => h("label", { key: name, class: wide ? "field whole" : "field" },
      h("span", null, title, hint && h("small", { class: "quiet" }, ` ${hint}`)),
      h("input", { name, value: fields[name], maxLength: 20_000, spellcheck: false, onInput: (event) => this.set(name, event.target.value) }));
    return h("div", { class: "submit-page" },
      h("h1", null, "Submit a job"),
      h("form", { onSubmit: (event) => { event.preventDefault(); this.send(false); } },
        h("div", { class: "fields grid-fields" }, FIELDS.map(input),
          h("label", { class: "field whole" }, h("span", null, "other keys of a job file ", h("small", { class: "quiet" }, "as JSON: {\"env\": {…}, \"elastic\": {…}}")),
            h("textarea", { name: "more", rows: 3, value: fields.more, spellcheck: false, class: "mono", onInput: (event) => this.set("more", event.target.value) }))),
        h("div", { class: "controls" },
          h("button", { type: "button", disabled: busy || !fields.run.trim(), onClick: () => this.send(true) }, "Dry run"),
          h("button", { class: "primary", disabled: busy || !fields.run.trim() }, "Submit"))),
      error && h(Refused, { error }),
      checked && h("section", { class: "told", role: "status", "aria-label": "dry run" },
        h("p", null, h("strong", null, `It would be taken${checked.tasks > 1 ? ` as ${count(checked.tasks)} tasks` : ""}.`)),
        (checked.then?.lines ?? []).map((line) => h("p", { key: line }, cut(line, 600)))),
      ids && h("p", { class: "told", role: "status" }, ids.length === 1 ? "Submitted as job " : `Submitted ${plural(ids.length, "job")}: `, ids.slice(0, 20).map((id) => [h("a", { key: id, href: addressOf("job", id) }, id), " "]), ids.length > 20 && `and ${count(ids.length - 20)} more`));
  }
}
