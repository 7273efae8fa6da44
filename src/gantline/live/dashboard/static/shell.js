// The frame around every page: where one is, whose session it is, and whether what is shown is up to date.

import { Component, h } from "./vendor/preact.js";
import { addressOf } from "./route.js";
import { nextTheme, themeNow } from "./theme.js";

const STATUS = { connecting: "connecting", live: "live", lost: "connection lost", ended: "session ended" };

export class Shell extends Component {
  componentDidMount() {
    this.forget = this.props.app.live.listen((what) => (what.status || what.board) && this.setState({}));
    this.titled();
  }

  componentDidUpdate() {
    this.titled();
  }

  componentWillUnmount() {
    this.forget();
  }

  titled() {
    document.title = `${this.props.page.title} · Gantline`;
    if (this.shows()) document.documentElement.dataset.ready = "yes";
  }

  /** A page of a live service has something to show as soon as there is a board. */
  shows() {
    const { app } = this.props;
    return app.me.kind === "view" || app.live.board !== null;
  }

  render({ app, pages, page, route, notice, onRead }) {
    const { me, live } = app, theme = themeNow();
    const link = (one) => h("a", { key: one.name, href: addressOf(one.name), "aria-current": one === page ? "page" : null }, one.title);
    return h("div", null,
      h("header", { class: "top" },
        h("a", { class: "brand", href: "#/now" }, "Gantline"),
        h("nav", { "aria-label": "pages" }, pages.filter((one) => one.listed !== false).map(link)),
        h("div", { class: "account" },
          me.kind === "live" && h("span", { class: `pulse ${live.status}`, role: "status" }, STATUS[live.status]),
          h("span", { class: "who", title: me.user }, `${me.user} (${me.role})`),
          h("button", { type: "button", onClick: () => { nextTheme(); this.setState({}); }, title: "switch between the system's, dark and light" }, theme || "auto", h("span", { class: "hidden" }, " theme")))),
      live.status === "lost" && h("p", { class: "notice banner", role: "alert" }, h("strong", null, "Connection lost."), " What is shown is the last that was received; it is tried again by itself."),
      notice && h("p", { class: "notice banner", role: "alert" }, notice, h("button", { type: "button", class: "plain", onClick: onRead }, "got it")),
      h("main", { id: "page" }, this.shows() ? h(page.component, { key: page.keyed ? `${page.name}/${route.what}` : page.name, app, route }) : h("p", { class: "quiet", role: "status" }, "Fetching the board …")));
  }
}
