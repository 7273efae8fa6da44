// How measures of runs are spelled, and which of them matter most.

import { count, number } from "../format.js";

const FIRST = ["jct_mean", "jct_median", "jct_p95", "queueing_mean", "slowdown_mean", "makespan", "utilization", "completed"];
const UNITS = [["s", 1], ["min", 60], ["h", 3600], ["d", 86_400]];
const NONE = "–";

/** A function that spells values of one row, all in the unit of the middle one. */
export function speller(unit, values) {
  const known = values.filter((value) => Number.isFinite(value) && value !== 0).map(Math.abs).sort((a, b) => a - b);
  const [name, size] = UNITS.findLast(([, seconds]) => (known[known.length >> 1] ?? 0) >= 1.5 * seconds) ?? UNITS[0];
  const spelled = {
    s: (value) => `${number(value / size)} ${name}`,
    share: (value) => `${(100 * value).toFixed(1)} %`,
    count,
    ratio: (value) => value.toFixed(2),
    money: (value) => value.toFixed(2),
  }[unit] ?? ((value) => `${number(value)} ${unit}`);
  return (value) => (value == null || !Number.isFinite(value) ? NONE : spelled(value));
}

/** Measures in two parts: those that matter most in their own order, and the rest. */
export function split(measures) {
  const matter = FIRST.map((key) => measures.find((one) => one.key === key)).filter(Boolean);
  return [matter, measures.filter((one) => !matter.includes(one))];
}

/** Which values are best; none where all are alike or neither way is better. */
export function bestOf(better, values) {
  const known = values.filter((value) => Number.isFinite(value));
  if (!better || new Set(known).size < 2) return NaN;
  return better === "lower" ? Math.min(...known) : Math.max(...known);
}
