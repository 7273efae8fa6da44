"""A committer that refuses everything: nothing starts, and the policy is called again and again."""

from __future__ import annotations

from dataclasses import replace

from gantline._alarm import TimeOverError
from gantline.core import memory as memories
from gantline.core.errors import GantlineError
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Jobs, Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.policy_failures import describe_error
from gantline.lab.conformance.scenarios import CARBON_WRITTEN

_ASKED = 40
_ROUND = 60.0
_MOST_GROWTH = 2.0


def ask_in_vain(policy: Policy) -> str:
    """What goes wrong while every grant is refused; empty: nothing."""
    jobs = [{"id": f"j{k}", "gpus": 1 + k % 4, "arrival": float(k), "estimate": 100.0 * (k + 1), "deadline": 5000.0} for k in range(12)]
    snapshot = decode_snapshot({"cluster": "2x4", "now": 12.0, "round": _ROUND, "jobs": jobs, "carbon": CARBON_WRITTEN})
    early = 0
    for number in range(1, _ASKED + 1):
        try:
            plan = policy.decide(snapshot)
        except (KeyboardInterrupt, TimeOverError):
            raise
        except BaseException as error:
            return f"refused {number - 1} times: {describe_error(policy, error)}"
        if not isinstance(plan, Plan):
            return f"it answers with a {type(plan).__name__}"
        try:
            memories.check(plan.memory)
            size = len(memories.encode(plan.memory))
        except GantlineError as error:
            return str(error)
        if number == _ASKED // 4:
            early = size
        snapshot = _later(snapshot, plan, number)
    if size > _MOST_GROWTH * max(early, 64):
        return f"its memory grows although nothing happens: {early} characters after {_ASKED // 4} refusals, {size} after {_ASKED}"
    return ""


def _later(snapshot: Snapshot, plan: Plan, number: int) -> Snapshot:
    """The same jobs a round later, none of them started."""
    now = snapshot.now + _ROUND
    memory = memories.decode(memories.encode(plan.memory))
    return replace(snapshot, now=now, decision=number + 1, jobs=Jobs(snapshot.lent, snapshot.jobs.rows, now), memory=memory)
