// What a job has printed: the last lines first, then whatever comes. A log of any size is read piece by piece.

import { Component, createRef, h } from "../vendor/preact.js";
import { bytes } from "../format.js";
import { Refused } from "../parts/refused.js";

const TAIL = 400; // lines at first
const PAUSE = 1000; // milliseconds between looks
const PIECE = 1 << 18; // bytes at a time
const KEPT = 2_000_000; // characters on the page; older ones are let go

export class Log extends Component {
  state = { text: "", first: 0, kept: 0, next: null, size: 0, epoch: null, epochs: [], end: false, error: null, follow: true };
  box = createRef();

  componentDidMount() {
    this.alive = true;
    this.begin(null);
  }

  componentWillUnmount() {
    this.alive = false;
    clearTimeout(this.timer);
  }

  get path() {
    return `/v1/jobs/${encodeURIComponent(this.props.id)}/logs`;
  }

  async begin(epoch) {
    clearTimeout(this.timer);
    await this.take(() => this.props.app.api.get(this.path, { tail: TAIL, epoch, limit: PIECE }), (found) => ({
      text: found.text, first: found.offset, next: found.next, chosen: epoch,
    }));
  }

  async more() {
    const { next, epoch } = this.state;
    await this.take(() => this.props.app.api.get(this.path, { offset: next, epoch, limit: PIECE }), (found) => {
      const text = this.state.text + found.text;
      const cut = Math.max(0, text.length - KEPT);
      return { text: text.slice(cut), next: found.next, first: cut ? null : this.state.first };
    });
  }

  /** Put a piece in front of what is shown. */
  async earlier() {
    const { first, kept, epoch, text } = this.state, from = Math.max(kept, first - PIECE);
    await this.take(() => this.props.app.api.get(this.path, { offset: from, epoch, limit: Math.max(4, first - from) }), (found) => (
      found.offset === from ? { text: found.text + text, first: from, follow: false } : { first: null }));
  }

  async take(ask, change) {
    clearTimeout(this.timer);
    try {
      const found = await ask();
      if (!this.alive) return;
      this.setState({ ...change(found), size: found.size, kept: found.first, epoch: found.epoch, epochs: found.epochs, end: found.end, error: null });
      if (!found.end || found.next < found.size) this.timer = setTimeout(() => this.again(), found.next < found.size ? 0 : PAUSE);
    } catch (error) {
      if (error.status === undefined) throw error;
      if (!this.alive) return;
      this.setState({ error });
      if (error.status === 0) this.timer = setTimeout(() => this.again(), PAUSE);
    }
  }

  /** Where the job was started again, its newest output is begun anew. */
  again() {
    const { chosen, epoch, epochs, next } = this.state;
    const newest = epochs[epochs.length - 1];
    if (next === null || epoch === null || (chosen == null && newest !== epoch)) this.begin(chosen ?? null);
    else this.more();
  }

  componentDidUpdate(_, before) {
    const box = this.box.current;
    if (box && this.state.follow && before.text !== this.state.text) box.scrollTop = box.scrollHeight;
  }

  onScroll = ({ target }) => {
    const follow = target.scrollTop + target.clientHeight >= target.scrollHeight - 4;
    if (follow !== this.state.follow) this.setState({ follow });
  };

  render(_, { text, first, kept, size, epoch, epochs, end, error, follow }) {
    return h("section", { class: "log-box", "aria-label": "output" },
      h("div", { class: "controls" },
        h("h2", null, "Output"),
        epochs.length > 1 && h("label", null, "of start", h("select", { value: epoch, onChange: (event) => this.begin(Number(event.target.value)) }, epochs.map((one) => h("option", { key: one, value: one }, one)))),
        h("span", { class: "quiet small" }, size ? `${bytes(size)}${end ? "" : ", goes on"}` : ""),
        first > kept && h("button", { type: "button", onClick: () => this.earlier() }, "earlier"),
        h("label", null, h("input", { type: "checkbox", checked: follow, onChange: (event) => this.setState({ follow: event.target.checked, text: `${text}` }) }), "follow")),
      error && h(Refused, { error }),
      h("pre", { class: "log", ref: this.box, tabIndex: 0, onScroll: this.onScroll, "aria-label": "lines of output" }, text || (end ? "It printed nothing." : "Nothing yet.")));
  }
}
