// Each start of a job: when, on which devices, how it ended.

import { h } from "../vendor/preact.js";
import { clock, cut, duration } from "../format.js";

/** One entry per start, from the job's events. */
export function startsOf(record) {
  const starts = new Map();
  for (const event of record.history) {
    if (!event.epoch) continue;
    const one = starts.get(event.epoch) ?? { epoch: event.epoch, from: event.time, devices: [], ended: null, how: "" };
    if (event.devices?.length) one.devices = event.devices;
    if (event.event !== "state") one.how = event.why || (event.exit_code != null ? `exit code ${event.exit_code}` : event.event);
    else if (!event.devices?.length) {
      one.ended ??= event.time;
      one.how ||= event.state;
    }
    starts.set(event.epoch, one);
  }
  return [...starts.values()];
}

export function Starts({ record, now }) {
  const starts = startsOf(record);
  if (!starts.length) return null;
  return h("section", { "aria-label": "where it ran" },
    h("h2", null, starts.length === 1 ? "Where it ran" : `Where it ran: ${starts.length} starts`),
    h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "starts" }, h("table", { class: "list" },
      h("thead", null, h("tr", null, ["start", "from", "for", "devices", "ended"].map((title) => h("th", { key: title, scope: "col" }, title)))),
      h("tbody", null, starts.slice(-50).map((one) => h("tr", { key: one.epoch },
        h("td", null, one.epoch), h("td", null, clock(one.from, now, true)), h("td", null, duration((one.ended ?? now) - one.from)),
        h("td", { title: cut(one.devices.join(", "), 2000) }, cut(one.devices.join(", "), 60)), h("td", null, one.ended ? cut(one.how, 120) : "runs")))))));
}
