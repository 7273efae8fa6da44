// The line of numbers at the top of Now.

import { h } from "../vendor/preact.js";
import { count, duration, percent } from "../format.js";

export function Numbers({ board }) {
  const { head } = board;
  const wait = head.oldest === null ? null : board.now() - head.oldest;
  return h("dl", { class: "numbers" },
    entry("busy", "devices busy", `${count(head.busy)} of ${count(head.devices)}`, head.devices ? percent(head.busy / head.devices) : ""),
    entry("running", "running", count(head.running), head.stuck ? `${count(head.stuck)} restart again and again without progress` : ""),
    entry("waiting", "waiting", count(head.waiting), head.held ? `${count(head.held)} held` : ""),
    entry("oldest", "longest wait", wait === null ? "none" : duration(wait)),
    entry("cordoned", "devices cordoned", count(head.cordoned)),
    entry("policy", "policy", head.policy, head.deciding ? head.in_charge : "it does not decide at present"));
}

function entry(name, title, value, more = "") {
  return h("div", { key: name, class: `number-${name}` }, h("dt", null, title), h("dd", { "data-number": name }, value), more && h("dd", { class: "more" }, more));
}
