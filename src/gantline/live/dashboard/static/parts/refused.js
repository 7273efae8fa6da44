// What the service said no with: what, where and what to do.

import { h } from "../vendor/preact.js";
import { cut } from "../format.js";

export function Refused({ error }) {
  const where = error.where ? ` (${cut(error.where, 200)})` : "", fix = error.fix ? `: ${cut(error.fix, 500)}` : "";
  return h("p", { class: "refused", role: "alert" }, h("strong", null, cut(error.what ?? String(error), 1000)), `${where}${fix}`);
}
