// Policy: what decides and with which parameters; another one as a preview on the present queue; then, with consent, the switch.

import { Component, h } from "../vendor/preact.js";
import { count, cut, plural } from "../format.js";
import { addressOf } from "../route.js";
import { whenReady } from "../live/api.js";
import { Dialog } from "../parts/dialog.js";
import { Dumbbells, isUndecided } from "../parts/dumbbells.js";
import { Loader } from "../parts/loader.js";
import { Refused } from "../parts/refused.js";

export class Policy extends Component {
  state = { other: "", settings: {}, asking: false, told: "" };

  componentDidMount() {
    const again = () => this.setState({});
    this.all = new Loader(again);
    this.now = new Loader(again);
    this.preview = new Loader(again);
    this.all.load((signal) => this.props.app.api.get("/v1/policies", {}, signal));
    this.look();
    this.forget = this.props.app.live.listen(() => this.props.app.live.board?.head.policy !== this.now.value?.policy && !this.now.busy && this.look());
  }

  componentWillUnmount() {
    this.forget();
    [this.all, this.now, this.preview].forEach((loader) => loader.stop());
  }

  look() {
    this.now.load((signal) => this.props.app.api.get("/v1/policy", {}, signal));
  }

  /** Settings that differ from their defaults. */
  given() {
    return Object.entries(this.state.settings).filter(([, value]) => value.trim() !== "");
  }

  ask = (event) => {
    event.preventDefault();
    const { api } = this.props.app, query = { other: this.state.other, set: this.given().map(([name, value]) => `${name}=${value}`) };
    this.setState({ asked: this.state.other });
    this.preview.value = null;
    this.preview.load((signal) => whenReady((since) => api.get("/v1/what-if", { ...query, since }, signal), (found) => found.status !== "pending", signal));
  };

  render({ app }, { other, settings, asking, told, asked }) {
    if (!this.all) return null;
    const policies = this.all.value?.policies ?? [], now = this.now.value;
    const present = policies.find((policy) => policy.name === now?.policy), chosen = policies.find((policy) => policy.name === other);
    const close = (done) => {
      this.setState({ asking: false, ...(done ? { told: [`${other} decides from now on.`, ...(done.notes ?? [])].join(" ") } : {}) });
      if (done) this.look();
    };
    return h("div", { class: "policy-page" },
      h("h1", null, now ? `Policy: ${now.policy}` : "Policy"),
      this.all.error && h(Refused, { error: this.all.error }),
      this.all.busy && h("p", { class: "quiet", role: "status" }, "Fetching the policies …"),
      told && h("p", { class: "told", role: "status" }, told),
      app.live.board.head.in_charge && h("p", null, app.live.board.head.in_charge),
      present && h("p", { class: "help wrap" }, present.help),
      present && h(Parameters, { policy: present, settings: now.settings }),
      app.may.has("what_if") && h("section", { "aria-label": "another policy" },
        h("h2", null, "What if another one decided?"),
        h("form", { class: "stack", onSubmit: this.ask },
          h("div", { class: "controls" },
            h("label", null, "policy", h("select", { value: other, onChange: (event) => this.setState({ other: event.target.value, settings: {} }) },
              h("option", { value: "" }, "choose one"), policies.map((policy) => h("option", { key: policy.name, value: policy.name }, policy.name)))),
            h("button", { class: "primary", disabled: !other || this.preview.busy }, this.preview.busy ? "The futures are being drawn …" : "Preview")),
          chosen && h("p", { class: "help quiet wrap" }, chosen.help),
          chosen?.parameters.length > 0 && h("details", null, h("summary", null, plural(chosen.parameters.length, "parameter")),
            h("div", { class: "fields grid-fields" }, chosen.parameters.map((one) => h("label", { key: one.name, class: "field" },
              h("span", null, one.name, h("small", { class: "quiet" }, ` ${cut(one.help ?? "", 160)}`)),
              h("input", { value: settings[one.name] ?? "", placeholder: String(one.default ?? ""), onInput: (event) => this.setState({ settings: { ...settings, [one.name]: event.target.value } }) }))))))),
      this.preview.error && h(Refused, { error: this.preview.error }),
      this.preview.value && h(Preview, { answer: this.preview.value }),
      this.preview.value && asked === other && app.may.has("use_policy") && h("p", null, h("button", { type: "button", class: "primary", onClick: () => this.setState({ asking: true, told: "" }) }, `Use ${other} …`)),
      asking && h(Dialog, { title: `Let ${other} decide?`, verb: `Use ${other}`, onClose: close, act: () => app.api.put("/v1/policy", { policy: other, settings: Object.fromEntries(this.given()) }) },
        h("p", null, `From the next decision on ${other} ranks and places jobs in place of ${now?.policy}. What runs may be stopped for others, as its rules say.`),
        h(Verdict, { answer: this.preview.value })));
  }
}

function Parameters({ policy, settings }) {
  if (!policy.parameters.length) return h("p", { class: "quiet" }, "It has no parameters.");
  return h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "parameters" }, h("table", { class: "facts" }, h("tbody", null, policy.parameters.map((one) =>
    h("tr", { key: one.name }, h("th", { scope: "row" }, one.name), h("td", null, h("strong", null, String(settings?.[one.name] ?? one.default ?? "")), " ", h("span", { class: "quiet" }, cut(one.help ?? "", 300))))))));
}

function Preview({ answer }) {
  return h("section", { class: "preview", "aria-label": "preview" },
    h("h2", null, `${answer.other} in place of ${answer.present}`),
    h("p", { class: "quiet small" }, `${plural(answer.jobs, "job")}, ${count(answer.samples)} draws of ${answer.over}; both futures from the same draws. Bars hold the middle nine tenths.`),
    h(Verdict, { answer }),
    h(Dumbbells, { answer }),
    answer.later.length > 0 && h("section", { "aria-label": "later" }, h("h3", null, `Would end later: ${plural(answer.later.length, "job")}`),
      h("p", { class: "later" }, answer.later.slice(0, 40).map((id) => [id === "-" ? "another user's" : h("a", { key: id, href: addressOf("job", id) }, id), " "]), answer.later.length > 40 && `and ${count(answer.later.length - 40)} more`)),
    (answer.lines ?? []).filter((line) => line.startsWith("note:")).map((line) => h("p", { key: line, class: "quiet small" }, line)));
}

function Verdict({ answer }) {
  const undecided = answer.differences.filter(isUndecided).length, all = answer.differences.length;
  const better = answer.differences.filter((one) => !isUndecided(one) && one.change < 0).length;
  const said = undecided === all ? "The futures do not decide between them." : `${better} of ${all} metrics would be shorter, ${all - undecided - better} longer, ${undecided} undecided.`;
  return h("p", { class: "sentence" }, said);
}
