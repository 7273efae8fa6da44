// Why a job is where it is, as a sentence; and when it is expected to start and to end, as intervals on the clock.

import { h } from "../vendor/preact.js";
import { clock, count, cut, duration, plural } from "../format.js";

export function Sentence({ job, explained, record }) {
  const found = explained.value;
  if (explained.error) return h("p", { class: "sentence bad" }, `${explained.error.what}; ${explained.error.fix}`);
  if (!found) return h("p", { class: "sentence quiet" }, job?.why || "Asking why …");
  const said = found.lines[0] ?? `${found.job} is ${found.state}`;
  const place = found.position ? ` It is number ${count(found.position)} of ${count(found.waiting)} that wait${found.ranked ? "" : " (as submitted: the policy names no order)"}.` : "";
  const code = record?.exit_code ? ` Its exit code is ${record.exit_code}.` : "";
  return h("p", { class: "sentence wrap" }, `${cut(said, 2000)}${/[.!?]$/.test(said) ? "" : "."}${place}${code}`);
}

/** P50 to P90 of the start, and of the end, on one axis that begins now. */
export function Expected({ forecast, now, state }) {
  if (!forecast) return null;
  if (forecast.status === "pending") return h("p", { class: "quiet small", role: "status" }, "The forecast is being made …");
  const spans = [
    ...(state === "pending" ? [{ name: "starts", from: forecast.starts_at_p50, to: forecast.starts_at_p90 }] : []),
    { name: "ends", from: forecast.ends_at_p50, to: forecast.ends_at_p90 },
  ].filter((span) => Number.isFinite(span.from) && span.from !== null);
  if (!spans.length) return h("p", { class: "quiet small" }, state === "pending" ? "No start can be forecast: too little is known of what is ahead." : "No end can be forecast: how long it takes is not known.");
  const last = Math.max(...spans.map((span) => span.to ?? span.from)), reach = Math.max(60, (last - now) * 1.08);
  const share = (at) => Math.max(0, Math.min(1, (at - now) / reach));
  return h("div", { class: "expected" },
    spans.map((span) => h("div", { key: span.name, class: "expected-row" },
      h("span", { class: "expected-name" }, span.name),
      h("span", { class: "axis", "aria-hidden": "true" },
        h("span", { class: `interval ${span.name}`, style: { left: `${100 * share(span.from)}%`, width: `${100 * Math.max(0.004, share(span.to ?? span.from) - share(span.from))}%` } })),
      h("span", { class: "expected-words" }, words(span, now)))),
    h("p", { class: "quiet small" }, "The bar runs from the median to the instant that nine of ten futures do not pass; it begins now."));
}

function words({ from, to }, now) {
  if (from <= now && to <= now) return "at any moment";
  const last = to == null || to - from < 30 ? "" : ` to ${clock(to, now)}`;
  return `${clock(from, now)}${last} (in ${duration(from - now)})`;
}

/** What is ahead: each that holds devices with how many and until when, then those that wait before it. */
export function Ladder({ explained, now, onJob }) {
  const found = explained.value;
  if (!found?.ahead?.length) return null;
  const most = Math.max(...found.ahead.map((one) => one.gpus), 1);
  const shown = [...found.ahead.filter((one) => one.holds).slice(0, 8), ...found.ahead.filter((one) => !one.holds).slice(0, 8)];
  const left = found.ahead.filter((one) => one.holds).length + found.ahead_waiting - shown.length;
  const named = (one) => (one.job === "-" ? h("span", { class: "quiet" }, "another user's job") : h("button", { type: "button", class: "plain", onClick: () => onJob(one.job) }, one.job));
  const until = (one) => (one.holds ? (one.ends_in == null ? "holds, no estimate" : `holds until about ${clock(now + one.ends_in, now)}`) : "waits ahead of it");
  return h("section", { class: "ladder-box", "aria-label": "what is ahead" },
    h("h2", { class: "minor" }, "Ahead of it"),
    h("ol", { class: "ladder" }, shown.map((one, at) => h("li", { key: `${one.job} ${at}` },
      h("span", { class: "rung-name" }, named(one)),
      h("span", { class: "rung", "aria-hidden": "true" }, h("span", { class: one.holds ? "rung-bar holds" : "rung-bar waits", style: { width: `${(100 * one.gpus) / most}%` } })),
      h("span", { class: "rung-words" }, `${plural(one.gpus, "device")}, ${until(one)}`)))),
    left > 0 && h("p", { class: "quiet small" }, `and ${count(left)} more`));
}
