// The pages, in the order of the navigation. `shown` says for which session a page is there.

import { Now } from "./now.js";

const live = (app) => app.me.kind === "live";

export const PAGES = [
  { name: "now", title: "Now", component: Now, shown: live },
];
