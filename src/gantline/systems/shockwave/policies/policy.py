"""`shockwave`: plan a window of rounds so that jobs progress alike, late ones first and none left for the end (NSDI 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.systems.shockwave.policies.window import PlanningWindow, plan_window, priorities

FUTURES = ("learned", "told")
_EPOCHS = 20.0  # parts in which the work of a job without epochs is counted
_BEHIND = 1e6  # jobs that are not planned in this round rank behind all that are, and fill what is idle


@dataclass(frozen=True)
class Shockwave(Policy):
    """The product of progress over a window of rounds, weighted by lateness against an equal share, less the longest job left.

    In the regime `shockwave` jobs change their batch size, and the window is planned from predicted epochs. Elsewhere a job's work is
    counted in twenty equal parts and its remaining time is the estimate.
    """

    name: ClassVar[str] = "shockwave"
    paper: ClassVar[str] = (
        "Zheng, Pan, Khan, Venkataraman, Akella: Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation (NSDI 2023)"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    window: int = field(default=20, metadata=about("rounds that a plan looks ahead", low=1, unit="rounds"))
    makespan: float = field(default=1e-3, metadata=about("weight of the longest job left after the window", low=0.0))
    power: float = field(default=12.0, metadata={"help": "how much more a job counts the later it is"})
    largest: float = field(default=1.0, metadata=about("ratio to the fair finish time above which a job is late", above=0.0))
    beat: int = field(default=8, metadata=about("rounds after which a new plan is made although no job came or went", low=1, unit="rounds"))
    futures: str = field(
        default="learned", metadata=about("regime shockwave: whether batch sizes to come are 'told' or 'learned'", one_of=FUTURES)
    )
    calibrate: bool = field(default=False, metadata={"help": "regime shockwave: correct durations as the artifact does, waiting included"})
    compat: str = field(
        default="", metadata=about("'shockwave': as the artifact does (told futures, calibration)", one_of=("", "shockwave"))
    )

    @property
    def told(self) -> bool:
        """Whether the planner knows batch sizes that a job has not had yet."""
        return self.compat == "shockwave" or self.futures == "told"

    @property
    def calibrates(self) -> bool:
        return self.compat == "shockwave" or self.calibrate

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, length = snapshot.jobs, snapshot.round or 120.0
        number = floor(snapshot.now / length + 1e-9)
        if not len(jobs):
            return Plan.rank(np.zeros(0), memory=None)
        ids = jobs.ids
        memory: dict[str, Any] = snapshot.memory or {"number": number, "members": [], "plan": [], "targets": {}}
        row, changed = number - int(memory["number"]), ids != memory["members"]
        targets = memory["targets"]
        if changed or row >= min(self.beat, self.window) or row >= len(memory["plan"]):
            share = min(1.0, snapshot.cluster.gpus / len(jobs))
            targets = self._fair_finishes(snapshot, targets, share, number, changed)
            memory = self._plan(snapshot, targets, share, number, length)
            row = 0
        chosen = set(memory["plan"][row])
        remaining = jobs.remaining
        key = np.where([name in chosen for name in ids], np.arange(len(jobs)), _BEHIND - remaining / (1.0 + remaining.max()))
        return Plan.rank(key, valid_until=(number + 1) * length, memory=memory)

    def _fair_finishes(self, snapshot: Snapshot, known: dict[str, Any], share: float, number: int, changed: bool) -> dict[str, Any]:
        """Per job: (weight, weighted sum, last estimate, its round) of when it would end with an equal share all along."""
        jobs, found = snapshot.jobs, {}
        fair = jobs.arrival + (jobs.attained + jobs.remaining) / share
        for name, value in zip(jobs.ids, fair.tolist()):
            weight, total, last, since = known.get(name, (0.0, 0.0, value, number))
            weight, total = weight + number - since, total + last * (number - since)
            found[name] = (weight, total, value if changed else last, number)
        return found

    def _plan(self, snapshot: Snapshot, targets: dict[str, Any], share: float, number: int, length: float) -> dict[str, Any]:
        jobs = snapshot.jobs
        remaining = np.maximum(jobs.remaining, 1.0)
        whole = np.maximum(jobs.done + remaining, 1.0)
        target = np.array([_target(*targets[name]) for name in jobs.ids])
        # both counted from the arrival, as completion times are: a ratio of two moments would depend on when the clock began
        lateness = (snapshot.now - jobs.arrival + remaining / share) / np.maximum(target - jobs.arrival, 1e-9)
        weight = priorities(lateness, remaining, largest=self.largest, power=self.power, length=length)
        window = PlanningWindow(
            jobs.gpus, np.full(len(jobs), _EPOCHS), _progress(jobs.done, whole), whole / _EPOCHS, remaining, weight,
            int(snapshot.cluster.gpus), self.window, length, self.makespan,
        )  # fmt: skip
        plan = plan_window(window)
        ids = jobs.ids
        rows = [[ids[k] for k in np.flatnonzero(plan[:, at])] for at in range(self.window)]
        return {"number": number, "members": ids, "plan": rows, "targets": targets}


def _progress(done: Floats, whole: Floats) -> Floats:
    return np.minimum(_EPOCHS * done / whole, _EPOCHS)


def _target(weight: float, total: float, last: float, since: int) -> float:
    """The fair finish time so far, by how long each estimate stood, and a little of the last."""
    return 0.9 * (total / weight if weight > 0 else last) + 0.1 * last
