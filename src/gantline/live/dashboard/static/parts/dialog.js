// A question before something is done: a modal dialog of the browser, with the refusal in it where the service says no.

import { Component, createRef, h } from "../vendor/preact.js";
import { Refused } from "./refused.js";

/** Props: `title`, `children`, `verb` (of the button), `act()` (a promise), `onClose(done)`, `disabled`. */
export class Dialog extends Component {
  dialog = createRef();
  state = { error: null, busy: false };

  componentDidMount() {
    this.before = document.activeElement;
    this.dialog.current.showModal();
  }

  componentWillUnmount() {
    this.before?.focus?.();
  }

  act = async (event) => {
    event.preventDefault();
    this.setState({ busy: true, error: null });
    try {
      const done = await this.props.act();
      this.props.onClose(done ?? true);
    } catch (error) {
      if (error.status === undefined) throw error;
      this.setState({ error, busy: false });
    }
  };

  render({ title, children, verb, onClose, disabled }, { error, busy }) {
    return h("dialog", { ref: this.dialog, "aria-label": title, onCancel: (event) => { event.preventDefault(); onClose(null); } },
      h("form", { onSubmit: this.act },
        h("h2", null, title),
        children,
        error && h(Refused, { error }),
        h("div", { class: "dialog-foot" },
          h("button", { type: "button", onClick: () => onClose(null) }, "Back"),
          h("button", { class: "primary", disabled: disabled || busy }, verb))));
  }
}
