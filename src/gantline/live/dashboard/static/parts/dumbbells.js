// Metrics under two policies: the present one as a ring, the other as a disc, with the interval of what the futures say. Where the interval
// holds the present value, nothing is decided, and that is how it looks: hollow, dashed, grey, and in words.

import { h } from "../vendor/preact.js";
import { duration, number } from "../format.js";

const ROW = 34; // pixels; widths are percentages, so that discs stay round
const NAMES = { jct_mean: "mean time from submission to end", wait_mean: "mean time until waiting jobs start", makespan: "time until all have ended" };

export const isUndecided = ({ low, high }) => !(low > 0 || high < 0) || low === null || high === null;

export function Dumbbells({ answer }) {
  return h("div", { class: "dumbbells", role: "table", "aria-label": `${answer.other} in place of ${answer.present}` },
    h("div", { class: "dumbbell head", role: "row" }, ["metric", `○ ${answer.present}   ● ${answer.other}`, "change"].map((title) => h("div", { key: title, role: "columnheader" }, title))),
    answer.differences.map((one) => h(Dumbbell, { key: one.metric, one })));
}

function Dumbbell({ one }) {
  const undecided = isUndecided(one);
  const [low, high] = [one.present * (1 + (one.low ?? 0)), one.present * (1 + (one.high ?? 0))];
  const most = Math.max(one.present, one.other, high, 1e-9);
  const share = (value) => 2 + (96 * Math.max(0, value)) / most, x = (value) => `${share(value)}%`;
  const verdict = undecided ? "undecided" : one.change < 0 ? "shorter" : "longer";
  return h("div", { class: `dumbbell ${undecided ? "undecided" : "decided"}`, role: "row", "data-metric": one.metric },
    h("div", { role: "rowheader" }, NAMES[one.metric] ?? one.metric),
    h("div", { role: "cell" },
      h("svg", { role: "img", "aria-label": `${duration(one.present)} now, ${duration(one.other)} then` },
        h("line", { class: "ground", x1: x(0), x2: x(most), y1: ROW / 2, y2: ROW / 2 }),
        h("rect", { class: "whisker", x: x(low), width: `${Math.max(0.3, share(high) - share(low))}%`, y: ROW / 2 - 6, height: 12 }),
        h("line", { class: "bar", x1: x(one.present), x2: x(one.other), y1: ROW / 2, y2: ROW / 2 }),
        h("circle", { class: "present", cx: x(one.present), cy: ROW / 2, r: 6 }),
        h("circle", { class: "other", cx: x(one.other), cy: ROW / 2, r: 6 })),
      h("div", { class: "quiet small" }, `${duration(one.present)} → ${duration(one.other)}`)),
    h("div", { role: "cell", class: "verdict" }, h("strong", null, verdict), h("span", { class: "small" }, one.change == null ? "" : ` ${signed(one.change)} (${signed(one.low)} to ${signed(one.high)})`)));
}

const signed = (share) => (share == null || !Number.isFinite(share) ? "–" : `${share > 0 ? "+" : share < 0 ? "−" : ""}${number(Math.abs(Math.round(100 * share)))} %`);
