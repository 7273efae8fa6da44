// A bar of a job's life: how long it waited, started, ran, changed its size, was held.

import { h } from "../vendor/preact.js";
import { clock, duration } from "../format.js";

const PHASES = { pending: "waited", held: "held", suspended: "held", starting: "started", running: "ran", resizing: "changed size", preempting: "was stopped" };

/** Spans of states from the job's events: {state, from, to, devices, epoch}. */
export function spansOf(record, now) {
  const spans = [];
  let open = { state: "pending", from: record.submitted, devices: [], epoch: 0 };
  for (const event of record.history) {
    if (event.event !== "state") continue;
    if (event.time > open.from || event.state !== open.state) spans.push({ ...open, to: event.time });
    open = { state: event.state, from: event.time, devices: event.devices ?? [], epoch: event.epoch ?? open.epoch, reason: event.reason };
  }
  spans.push({ ...open, to: record.ended ?? now });
  return spans.filter((span) => span.to > span.from && PHASES[span.state]);
}

export function Phases({ record, now }) {
  if (!record) return null;
  const spans = spansOf(record, now);
  const totals = new Map();
  for (const span of spans) totals.set(PHASES[span.state], (totals.get(PHASES[span.state]) ?? 0) + span.to - span.from);
  const words = [...totals].map(([name, seconds]) => `${name} ${duration(seconds)}`).join(" · ");
  const about = (span) => `${PHASES[span.state]} ${duration(span.to - span.from)}, ${clock(span.from, now, true)} to ${clock(span.to, now, true)}${span.devices.length ? `, ${span.devices.length} devices` : ""}`;
  return h("figure", { class: "phases" },
    h("div", { class: "phase-bar", role: "img", "aria-label": `phases: ${words || "none yet"}` }, spans.map((span, at) =>
      h("span", { key: at, class: `phase p-${span.state}`, title: about(span), style: { flexGrow: String(Math.max(span.to - span.from, 0.001)) } }))),
    h("figcaption", { class: "quiet small" }, words || "just submitted", ` · submitted ${clock(record.submitted, now)}`, record.ended ? ` · ended ${clock(record.ended, now)}` : ""));
}
