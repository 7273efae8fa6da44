// What the service said no with: what, where and what to do.

import { h } from "../vendor/preact.js";
import { cut } from "../format.js";

export function Refused({ error }) {
  const what = cut(error.what ?? String(error), 1000);
  return h("p", { class: "refused", role: "alert" }, h("strong", null, `${what[0]?.toUpperCase() ?? ""}${what.slice(1)}`), error.where ? ` (${cut(error.where, 200)})` : "", error.fix ? `. ${cut(error.fix, 500)}` : "");
}
