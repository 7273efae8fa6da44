"""When a job would start if it were submitted now: the present with one more job, decided and rolled forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gantline.core.inputs import Submit
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.advance import arrive
from gantline.engine.assembly.rules import RunRules
from gantline.engine.lists import RowCount
from gantline.lab.questions.changes import RUNS
from gantline.lab.questions.explain import explain
from gantline.lab.questions.forecast import Setup
from gantline.simulator.from_here import private_tables, state_on
from gantline.traces.files.placements import GivenPlacement

NAME = "this job"


def with_job(snapshot: Snapshot, policy: Policy, job: Mapping[str, object], placement: GivenPlacement | None = None) -> Snapshot:
    """The present in which that job has just arrived; it is written as in the `jobs` of a snapshot."""
    instant, tables = private_tables(snapshot)
    tables = tables.copy()
    rules = RunRules.at(instant, placement)
    state = state_on(tables, instant, rules)
    state.lists.number[RowCount.NEXT] = state.lists.number[RowCount.HELD] = tables.count
    rules.engine(state, rules.policy(policy)).apply(Submit(instant.now, dict(job)))
    arrive(tables.F[:, : tables.count], tables.I, state.lists, instant.now, math.inf)
    state.rebuild()
    return state.snapshot()


def submission(snapshot: Snapshot, policy: Policy, job: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """Its place in the queue, why it would wait, when it is expected to start.

    A job without an estimate has no expected end, one behind jobs of unknown length no expected start; `unknown` says why.
    """
    setup = setup.at(snapshot)
    then = with_job(snapshot, policy, {**job, "id": NAME}, setup.placement)
    found = explain(then, policy, NAME, setup)
    ahead = [one for one in found.ahead if not one.holds]
    expected, waits = found.expected, found.act not in RUNS
    unknown = found.unknown if expected is None else expected.unknown
    fields: dict[str, Any] = {
        "act": found.act, "why": found.why, "position": len(ahead) + 1 if waits else None, "estimated": "estimate" in job,
        "waiting": int((~then.jobs.running).sum()), "ahead": [asdict(one) for one in found.ahead[:100]],
        "changes": [asdict(one) for one in found.changes], "waits_for": list(found.waits_for),
        "expected": None if expected is None or unknown else expected.as_json(), "unknown": unknown,
    }  # fmt: skip
    lines = [f"it would wait, as number {len(ahead) + 1}: {found.why}" if waits else "it would start at once"]
    if expected is not None:
        lines.append(expected.told())
    elif unknown:
        lines.append(f"expected start {unknown}" if waits else f"expected end {unknown}")
    lines += found.prospects()
    used = expected.samples if expected is not None else 0
    notes = [f"note: {setup.used(used)} of {setup.over}"] if used else []
    return {**fields, "samples": used, "lines": [*lines, *notes]}
