// The whole page: whose session it is, which page is shown, and the one live board that all pages share.

import { Component, h } from "./vendor/preact.js";
import { Api } from "./live/api.js";
import { Live } from "./live/live.js";
import { Selection } from "./live/selection.js";
import { Login } from "./login.js";
import { PAGES } from "./pages/all.js";
import { routeOf, takeLoginCode } from "./route.js";
import { Shell } from "./shell.js";

export class App extends Component {
  state = { phase: "starting", why: null, notice: "", route: routeOf(location.hash) };

  componentDidMount() {
    this.api = new Api((why) => this.out(why));
    addEventListener("hashchange", () => this.moved());
    this.begin(takeLoginCode());
  }

  moved() {
    const code = takeLoginCode();
    if (code) this.begin(code);
    else this.setState({ route: routeOf(location.hash) });
  }

  /** Log in with a code, or go on with the session of this tab. */
  async begin(code = "") {
    this.live?.stop();
    try {
      if (code) await this.api.login(code);
      if (!this.api.token) return this.out(null);
      const me = await this.api.get("/v1/me");
      this.enter(me);
    } catch (error) {
      if (error.status === 0) setTimeout(() => this.begin(code), 1500);
      this.setState({ phase: error.status === 0 ? "starting" : "login", why: error });
    }
    return undefined;
  }

  enter(me) {
    const before = this.me;
    this.me = me;
    this.may = new Set(me.may);
    this.live = new Live(this.api);
    this.selection = new Selection(this.live);
    this.live.listen((what) => what.status && this.heard());
    if (me.kind === "live") this.live.run();
    const shrunk = before && before.user === me.user && before.role !== me.role;
    const notice = shrunk ? `Your role is ${me.role} now.` : "";
    this.setState({ phase: "ready", why: null, notice, route: routeOf(location.hash) });
  }

  /** The stream has ended, or is back: find out what is left of the session. */
  async heard() {
    const { live } = this;
    if (live.status === "ended") {
      this.ended = live.why;
      await this.begin();
    } else if (live.status === "live" && live.wasLost) {
      live.wasLost = false;
      const me = await this.api.get("/v1/me").catch(() => this.me);
      if (live === this.live && me.role !== this.me.role) this.begin();
    } else if (live.status === "lost") live.wasLost = true;
  }

  out(why) {
    this.live?.stop();
    this.api.keep("");
    this.setState({ phase: "login", why: why ?? this.ended ?? null });
    this.ended = null;
  }

  componentDidUpdate() {
    if (this.state.phase === "login") document.documentElement.dataset.ready = "yes";
  }

  render(_, { phase, why, notice, route }) {
    if (phase === "starting") return h("p", { class: "login", role: "status" }, why ? `${why.what}; ${why.fix}` : "Connecting …");
    if (phase === "login") return h(Login, { why, onToken: (token) => { this.api.keep(token); this.begin(); } });
    const pages = PAGES.filter((page) => page.shown(this));
    const page = pages.find((one) => one.name === route.page) ?? pages[0];
    return h(Shell, { app: this, pages, page, route, notice, onRead: () => this.setState({ notice: "" }) });
  }
}
