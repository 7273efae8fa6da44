// Without a session nothing is shown but how to get one.

import { Component, h } from "./vendor/preact.js";

export class Login extends Component {
  state = { token: "" };

  render({ why, onToken }, { token }) {
    const send = (event) => {
      event.preventDefault();
      if (token.trim()) onToken(token.trim());
    };
    return h("main", { class: "login" },
      h("h1", null, "Gantline"),
      why && h("p", { class: "refused", role: "alert" }, `${why.what}${why.fix ? `; ${why.fix}` : ""}`),
      h("p", null, "Run ", h("code", null, "gantline dashboard"), " where the service's folder is: it opens this page with a link that logs you in once."),
      h("form", { onSubmit: send },
        h("label", { for: "token" }, "Or paste a token (it stays in this tab)"),
        h("input", { id: "token", name: "token", type: "password", autocomplete: "off", spellcheck: false, value: token, onInput: (event) => this.setState({ token: event.target.value }) }),
        h("div", null, h("button", { class: "primary", disabled: !token.trim() }, "Log in"))));
  }
}
