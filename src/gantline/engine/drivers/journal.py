"""The journal of a run: what entered, and a hash of every plan that followed; now and then a decision whole, with its snapshot.

A decision is a line of some ninety characters, because the inputs and the policy determine the rest: folding them again must give the same
hashes. Whole ones are the first, second, fourth, eighth and so on, and every 256th: they show where a replay differs, and any of them can
be decided again by itself.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core import memory as memories
from gantline.core.inputs import Input, Report, encode_input
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import encode_plan, encode_snapshot
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.stepping import Stepping

_WHOLE_EVERY = 256


class Journal:
    """Records what an engine does; `lines` are plain JSON values, in the order in which things happened.

    `whole`: now and then a decision with its snapshot. A caller with its own checkpoints needs none: they cost as much as there are jobs.
    """

    def __init__(self, whole: bool = True) -> None:
        self.lines: list[dict[str, Any]] = []
        self.whole = whole
        self.decisions = 0
        self._run: Stepping | None = None

    def listen(self, run: Stepping) -> None:
        """To this run: its clock says when an input was received, and a report came after so many orders."""
        self._run, run.engine.recorder, run.engine.inputs.received = run, self.decided, self.received

    def received(self, value: Input) -> None:
        """An input was applied."""
        assert self._run is not None
        driver = self._run.driver
        after = {"after": driver.reconciler.sent} if isinstance(value, Report) and isinstance(driver, Acknowledged) else {}
        self.lines.append({**encode_input(value), "heard": float(self._run.state.now), **after})

    def decided(self, snapshot: Snapshot, plan: Plan) -> None:
        """The policy has answered."""
        self.decisions += 1
        line: dict[str, Any] = {"decision": int(snapshot.decision), "now": float(snapshot.now), "hash": plan_hash(plan)}
        if (chosen := plan.in_charge) is not None:
            line["in_charge"] = chosen.policy
            if chosen.why and chosen.since == snapshot.now:
                line["why"] = chosen.why
        if self.whole and is_whole(self.decisions):
            line |= {"snapshot": encode_snapshot(snapshot), "plan": encode_plan(plan)}
        self.lines.append(line)


def is_whole(number: int) -> bool:
    """Whether the decision of that number is kept whole."""
    return number % _WHOLE_EVERY == 0 or (number < _WHOLE_EVERY and number & (number - 1) == 0)


def plan_hash(plan: Plan) -> str:
    """A hash over all of a plan; equal plans have equal hashes."""
    digest = hashlib.blake2b(digest_size=12)
    if plan.ranking is not None:
        digest.update(np.ascontiguousarray(plan.ranking.key, dtype=np.float64).tobytes())
        digest.update(f"{int(plan.ranking.misfit)} {plan.ranking.preempt}".encode())
        if plan.ranking.placement is not None:
            digest.update(plan.ranking.placement.encode())
    if plan.assignments is not None:
        for name, column in plan.assignments.filled_columns():
            digest.update(name.encode())
            digest.update(np.ascontiguousarray(column).tobytes() if isinstance(column, np.ndarray) else repr(column).encode())
    rest = (plan.reservations, plan.refusals, plan.release, plan.valid_until, plan.notes)
    digest.update(repr(rest).encode())
    if plan.in_charge is not None:
        digest.update(repr(plan.in_charge).encode())
    digest.update(memories.encode(plan.memory).encode())
    return digest.hexdigest()


# --- a run held against the journal of another: the first plan that is not the recorded one is named --------------------


@dataclass(frozen=True)
class PlanDifference:
    """Where a replay first gave another plan."""

    decision: int
    time: float
    path: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"decision {self.decision} at {self.time:g} s, {self.path}: recorded {self.recorded}, replayed {self.replayed}"


@dataclass(frozen=True)
class Replayed:
    """How far a replay came."""

    decisions: int
    difference: PlanDifference | None = None
    open: int = 0  # decisions that follow from the last inputs of the record, which ends before them
    left_out: int = 0  # inputs of the record that could not be applied
    before: int = 0  # decisions that were made before the record begins


class PartedError(Exception):
    def __init__(self, difference: PlanDifference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Check(Journal):
    """A journal that must come out as another one did."""

    def __init__(self, expected: list[dict[str, Any]], *, is_open: bool = False) -> None:
        super().__init__()
        self._expected = expected
        self._is_open = is_open  # the record may end before the last decision

    def received(self, value: Input) -> None:
        """Inputs are those of the record."""

    def decided(self, snapshot: Snapshot, plan: Plan) -> None:
        at = self.decisions
        self.decisions += 1
        if at >= len(self._expected):
            if self._is_open:
                return
            raise PartedError(PlanDifference(snapshot.decision, snapshot.now, "decision", "not made", "made"))
        line = self._expected[at]
        if (line["decision"], line["now"]) != (snapshot.decision, snapshot.now):
            recorded = f"number {line['decision']} at {line['now']:g} s"
            raise PartedError(PlanDifference(snapshot.decision, snapshot.now, "decision", recorded, "this one"))
        parted = None
        if "snapshot" in line:
            now = json.loads(json.dumps({"snapshot": encode_snapshot(snapshot), "plan": encode_plan(plan)}, allow_nan=False))
            parted = first_difference(line["snapshot"], now["snapshot"], "snapshot") or first_difference(line["plan"], now["plan"], "plan")
        elif line["hash"] != plan_hash(plan):
            parted = ("plan", line["hash"], plan_hash(plan))
        if parted is not None:
            raise PartedError(PlanDifference(snapshot.decision, snapshot.now, parted[0], _short(parted[1]), _short(parted[2])))


def first_difference(ours: Any, theirs: Any, path: str) -> tuple[str, Any, Any] | None:
    """The first place at which two JSON values differ, with both values there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            found = first_difference(ours.get(key), theirs.get(key), f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (a, b) in enumerate(zip(ours, theirs)):
            found = first_difference(a, b, f"{path}[{place}]")
            if found is not None:
                return found
        return None
    return None if ours == theirs else (path, ours, theirs)


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
