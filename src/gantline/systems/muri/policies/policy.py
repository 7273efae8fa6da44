"""Muri on the engine: jobs whose stages interleave well share devices, wherever jobs want more devices than there are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.performance.cycle_periods import MOST, Stages, usable
from gantline.performance.stage_cycles import ITERATION, STAGES
from gantline.systems.muri.policies.grouping import Grouping


class _Sharer(NamedTuple):
    """A job as grouping sees it."""

    at: int  # place in the snapshot
    type: int
    gpus: int
    kind: int
    stages: Stages
    step: float
    value: float


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
        jobs = snapshot.jobs
        service = jobs.remaining if self.known else jobs.attained
        value: Floats = service * jobs.gpus
        room = snapshot.cluster.capacity.tolist()
        grouping: Grouping[_Sharer] = Grouping(matching=self.matching, worst=self.ordering == "worst", most=self.most)
        rows: list[Assignment] = []
        for kind, sharers in self._by_type(snapshot, value):
            groups = grouping.form(sharers, room[kind])
            groups.sort(key=lambda group: min(job.value for job in group))
            for group in groups:
                if group[0].gpus <= room[kind]:
                    room[kind] -= group[0].gpus
                    rows += self._assign(snapshot, group, grouping)
        waits = len(rows) < len(jobs) or any(row.group >= 0 for row in rows)
        return Plan.assign(rows, valid_until=snapshot.now + self.interval if waits else math.inf)

    def _by_type(self, snapshot: Snapshot, value: Floats) -> Iterator[tuple[int, list[_Sharer]]]:
        """The jobs of each device type, in order: where they run, else the type of their first option."""
        jobs = snapshot.jobs
        columns = np.column_stack([jobs.metric(name) for name in (*STAGES, ITERATION)])
        kinds: dict[tuple[float, ...], int] = {}
        found: dict[int, list[_Sharer]] = {}
        gpus, types = jobs.gpus.tolist(), jobs.type.tolist()
        for at in np.argsort(value, kind="stable").tolist():
            type = types[at] if types[at] >= 0 else jobs.options(at)[0].type
            *times, step = columns[at].tolist()
            stages = Stages(*times)
            known = usable(stages) and step > 0.0
            kind = kinds.setdefault(stages, len(kinds)) if known else -1
            found.setdefault(type, []).append(_Sharer(at, type, gpus[at], kind, stages, step, float(value[at])))
        yield from found.items()

    def _assign(self, snapshot: Snapshot, group: tuple[_Sharer, ...], grouping: Grouping[_Sharer]) -> Iterator[Assignment]:
        """One group; it is called by the row of its first job, so that it keeps its name as long as that one stays."""
        if len(group) == 1:
            yield Assignment(group[0].at, type=group[0].type, gpus=group[0].gpus)
            return
        number = min(int(snapshot.jobs.rows[job.at]) for job in group)
        for place, member in enumerate(grouping.order(group)):
            job = group[member]
            yield Assignment(job.at, type=job.type, gpus=job.gpus, group=number, mode=Mode.INTERLEAVE, offset=float(place))
