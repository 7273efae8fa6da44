"""Muri on the engine: jobs whose stages interleave well share devices, wherever jobs want more devices than there are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.plan import Assignments, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.models.sharing.stage_cycles import ITERATION, MOST, STAGES, Stages, usable
from gantline.systems.muri.policies.grouping import Grouping

_SOON = 1e-6


class _Sharer(NamedTuple):
    """A job as grouping sees it."""

    at: int  # place in the snapshot
    gpus: int
    kind: int
    step: float
    value: float


@lru_cache(maxsize=64)
def _grouping(stages: tuple[Stages, ...], matching: bool, worst: bool, most: int) -> Grouping[_Sharer]:
    """Kept from decision to decision for the matchings that it has solved; what it says depends on what it is made of alone."""
    return Grouping(stages, matching=matching, worst=worst, most=most)


@dataclass(frozen=True)
class Muri(Policy):
    """Jobs of one size share devices in groups of up to four, a stage apart, if that is faster than taking turns.

    The order is least remaining GPU-time first (Muri-S) or, where durations are unknown, least attained (Muri-L). A job without stage
    times has devices of its own.
    """

    name: ClassVar[str] = "muri"
    paper: ClassVar[str] = "Zhao et al.: Multi-Resource Interleaving for Deep Learning Training (SIGCOMM 2022)"

    known: bool = field(
        default=False, metadata={"help": "whether what is left of a job is known (Muri-S); else attained service counts (Muri-L)"}
    )
    matching: bool = field(default=True, metadata={"help": "whether groups come from matchings; off: from chunks of the order"})
    ordering: str = field(
        default="best", metadata=about("the order in which the members of a group follow each other", one_of=("best", "worst"))
    )
    most: int = field(default=MOST, metadata=about("jobs that share at most", low=1, high=MOST))
    interval: float = field(
        default=360.0, metadata=about("seconds after which groups are formed anew although nothing has happened", above=0.0, unit="seconds")
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"remaining"}) if self.known else frozenset()

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, now = snapshot.jobs, snapshot.now
        memory = snapshot.memory or {}
        seen = np.concatenate((jobs.rows, snapshot.cluster.capacity))
        if not memory or now >= memory["until"] - _SOON or not np.array_equal(seen, memory["seen"]):
            columns = self._columns(snapshot)
            waits = len(columns["job"]) < len(jobs) or bool((columns["group"] >= 0).any())
            memory = {"seen": seen, "until": now + self.interval if waits else math.inf, "columns": columns}
        return Plan.assign(Assignments(**memory["columns"]), valid_until=memory["until"], memory=memory)

    def _columns(self, snapshot: Snapshot) -> dict[str, Ints | Floats | Bools]:
        """Groups formed anew, as columns of a plan."""
        jobs = snapshot.jobs
        value: Floats = (jobs.remaining if self.known else jobs.attained) * jobs.gpus
        times = [Stages(*each) for each in zip(*(jobs.metric(name).tolist() for name in STAGES))]
        stages = tuple(sorted({each for each in times if usable(each)}))
        grouping = _grouping(stages, self.matching, self.ordering == "worst", self.most)
        room = snapshot.cluster.capacity.tolist()
        rows: list[tuple[float, ...]] = []
        for type, sharers in self._by_type(snapshot, value, times, {each: kind for kind, each in enumerate(stages)}).items():
            for group in sorted(grouping.form(sharers, room[type]), key=lambda group: min([job.value for job in group])):
                if group[0].gpus <= room[type]:
                    room[type] -= group[0].gpus
                    rows += self._rows(snapshot, type, group, grouping)
        table = np.array(rows, dtype=np.float64).reshape(-1, 6)
        whole: dict[str, Ints | Floats | Bools] = {
            name: table[:, at].astype(np.int64) for at, name in enumerate(("job", "type", "gpus", "group", "mode"))
        }
        return whole | {"together": table[:, 3] >= 0.0, "offset": table[:, 5].copy()}

    def _by_type(self, snapshot: Snapshot, value: Floats, times: list[Stages], kinds: dict[Stages, int]) -> dict[int, list[_Sharer]]:
        """The jobs of each device type, in order: where they run, else the type of their first option."""
        jobs = snapshot.jobs
        found: dict[int, list[_Sharer]] = {}
        gpus, types, values, steps = jobs.gpus.tolist(), jobs.type.tolist(), value.tolist(), jobs.metric(ITERATION).tolist()
        for at in np.argsort(value, kind="stable").tolist():
            type = types[at] if types[at] >= 0 else jobs.options(at)[0].type
            kind = kinds.get(times[at], -1) if steps[at] > 0.0 else -1
            found.setdefault(type, []).append(_Sharer(at, gpus[at], kind, steps[at], values[at]))
        return found

    def _rows(self, snapshot: Snapshot, type: int, group: tuple[_Sharer, ...], grouping: Grouping[_Sharer]) -> Iterator[tuple[float, ...]]:
        """Place, type, devices, name of the group, mode and offset; a group is called by its first row, and keeps that name with it."""
        if len(group) == 1:
            yield group[0].at, type, group[0].gpus, -1, Mode.EXCLUSIVE, 0.0
            return
        name = min([int(snapshot.jobs.rows[job.at]) for job in group])
        for place, member in enumerate(grouping.order(group)):
            yield group[member].at, type, group[member].gpus, name, Mode.INTERLEAVE, place
