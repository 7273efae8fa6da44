// A state as a shape and a word, so that no colour has to be told apart.

import { h } from "../vendor/preact.js";

const SHAPES = {
  pending: "○", held: "‖", suspended: "‖", starting: "◔", running: "●", resizing: "◑", preempting: "◕",
  succeeded: "✓", failed: "✕", cancelled: "–", timeout: "✕", rejected: "✕",
};

export function StateMark({ state }) {
  return h("span", { class: `state s-${state}` }, h("span", { class: "shape", "aria-hidden": "true" }, SHAPES[state] ?? "?"), state);
}
