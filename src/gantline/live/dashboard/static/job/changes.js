// Every change that would start a waiting job now, as a button that fills in the request; nothing is sent before it is confirmed.

import { h } from "../vendor/preact.js";
import { go } from "../route.js";

export function Changes({ app, record, forecast, onSuggest }) {
  const changes = forecast?.changes ?? [];
  if (!changes.length) return null;
  const offered = changes.filter((change) => (change.what === "gpus" ? app.may.has("act") : change.what === "type" ? app.may.has("submit") : app.may.has("change_job")));
  const act = (change) => {
    if (change.what === "gpus") onSuggest({ name: "resize", gpus: change.value });
    else if (change.what === "type") {
      app.draft = { ...record.spec, resources: { accelerators: `${change.value}:${record.gpus}` } };
      go("submit");
    } else onSuggest({ name: "change", given: { [change.what]: String(change.value) } });
  };
  return h("section", { "aria-label": "changes that would start it" },
    h("h2", { class: "minor" }, "Would start it now"),
    h("ul", { class: "changes" }, changes.map((change) => h("li", { key: change.sentence },
      offered.includes(change) ? h("button", { type: "button", onClick: () => act(change) }, change.sentence) : change.sentence))));
}
