"""Holding a run against the journal of another: each plan must be the recorded one, and the first that is not is named."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from gantline.core.inputs import Input
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import encode_plan, encode_snapshot
from gantline.engine.drivers.journal import Journal, plan_hash


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
