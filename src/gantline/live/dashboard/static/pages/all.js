// The pages, in the order of the navigation. `shown` says for which session a page is there; `keyed` pages begin anew for each thing they show.

import { History } from "./history.js";
import { JobPage } from "./job.js";
import { Now } from "./now.js";
import { Policy } from "./policy.js";
import { Queues } from "./queues.js";
import { Results } from "./results.js";
import { Submit } from "./submit.js";

const live = (app) => app.me.kind === "live";

export const PAGES = [
  { name: "now", title: "Now", component: Now, shown: live },
  { name: "job", title: "Job", component: JobPage, shown: live, listed: false, keyed: true },
  { name: "queues", title: "Queues and users", component: Queues, shown: live },
  { name: "history", title: "History", component: History, shown: live },
  { name: "policy", title: "Policy", component: Policy, shown: live },
  { name: "results", title: "Results", component: Results, shown: () => true },
  { name: "history", title: "History", component: History, shown: (app) => !live(app), listed: false },
  { name: "submit", title: "Submit", component: Submit, shown: (app) => live(app) && app.may.has("submit") },
];
