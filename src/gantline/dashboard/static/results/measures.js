// How a measure of a run is spelled: its own unit decides.

import { duration, number, percent } from "../format.js";

export function spell(value, unit) {
  if (value == null || !Number.isFinite(value)) return "–";
  if (unit === "s" || unit === "seconds") return duration(value);
  if (unit === "share" || unit === "ratio%" || unit === "fraction") return percent(value);
  return `${number(value)}${unit && unit !== "1" ? ` ${unit}` : ""}`;
}
