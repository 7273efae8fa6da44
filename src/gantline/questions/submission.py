"""When a job would start if it were submitted now: the present with one more job, decided and rolled forward."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gantline.assembly.rules import RunRules
from gantline.core.inputs import Submit
from gantline.core.insiders import tables_behind
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.units import human_seconds
from gantline.engine import lists as ls
from gantline.engine.advance import arrive
from gantline.files.placements import GivenPlacement
from gantline.questions.changes import RUNS
from gantline.questions.explain import Explanation, explain
from gantline.questions.forecast import Setup
from gantline.simulator.from_here import private_tables, state_on

NAME = "this job"


def with_job(snapshot: Snapshot, policy: Policy, job: Mapping[str, object], placement: GivenPlacement | None = None) -> Snapshot:
    """The present in which that job has just arrived; it is written as in the `jobs` of a snapshot."""
    instant, tables = private_tables(snapshot)
    tables = tables.copy()
    rules = RunRules.at(instant, placement)
    state = state_on(tables, instant, rules)
    state.lists.number[ls.NEXT] = state.lists.number[ls.HELD] = tables.count
    rules.engine(state, rules.policy(policy)).apply(Submit(instant.now, dict(job)))
    arrive(tables.F[:, : tables.count], tables.I, state.lists, instant.now, math.inf)
    state.rebuild()
    return state.snapshot()


def submission(snapshot: Snapshot, policy: Policy, job: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """Its place in the queue, why it would wait, when it is expected to start; a job without an estimate has no expected end."""
    estimated = "estimate" in job
    setup = setup.at(snapshot)
    then = with_job(snapshot, policy, {**job, "id": NAME}, setup.placement)
    found = explain(then, policy, NAME, setup)
    ahead = [one for one in found.ahead if not one.holds]
    fields: dict[str, Any] = {
        "act": found.act, "why": found.why, "position": None if found.act in RUNS else len(ahead) + 1, "estimated": estimated,
        "waiting": int((~then.jobs.running).sum()), "ahead": [asdict(one) for one in found.ahead[:100]],
        "changes": [asdict(one) for one in found.changes], "waits_for": list(found.waits_for),
        "expected": None if found.expected is None else found.expected.as_json(),
    }  # fmt: skip
    lines = ["it would start at once" if found.act in RUNS else f"it would wait, as number {len(ahead) + 1}: {found.why}"]
    expected = found.expected
    if found.act not in RUNS and (unknown := _of_unknown_length(then, found)):
        fields["expected"], expected = None, None
        lines.append(f"{_ahead_of_it(found)}, {unknown} of unknown length: its start is not known")
    if found.act not in RUNS and expected is not None:
        lines.append(f"expected start {_in(expected.start_p50, then.now)} (P50), {_in(expected.start_p90, then.now)} (P90)")
    if not estimated:
        lines.append("its end is not known: it has no estimate")
        fields["expected"] = fields["expected"] and {
            key: None if key.startswith("finish_") else value for key, value in fields["expected"].items()
        }
    elif expected is not None:
        lines.append(f"expected end {_in(expected.finish_p50, then.now)} (P50), {_in(expected.finish_p90, then.now)} (P90)")
    lines += found.prospects()
    used = expected.samples if expected is not None else 0
    return {**fields, "samples": used, "lines": [*lines, f"note: {setup.used(used)} of {setup.over}"]}


def _of_unknown_length(snapshot: Snapshot, found: Explanation) -> int:
    """How many of the jobs before it have no estimate."""
    tables = tables_behind(snapshot)
    blind = {tables.ids[row] for row in tables.unestimated}
    return sum(one.job in blind for one in found.ahead)


def _ahead_of_it(found: Explanation) -> str:
    """What is known of the jobs before it: ``8 jobs, 14 GPU-hours ahead``."""
    hours = math.fsum(one.gpus * one.ends_in for one in found.ahead if not math.isnan(one.ends_in)) / 3600.0
    known = f", {hours:.3g} GPU-hours of those that run" if hours > 0.0 else ""
    return f"{len(found.ahead)} job{'s' if len(found.ahead) != 1 else ''}{known} ahead"


def _in(instant: float, now: float) -> str:
    return f"in {human_seconds(instant - now)}" if math.isfinite(instant) else "not within the horizon"
