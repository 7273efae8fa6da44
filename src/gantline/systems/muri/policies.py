"""`muri`: jobs whose stages interleave well share devices, wherever jobs want more devices than there are (SIGCOMM 2022)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.plan import Assignments, Mode, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.sharing.stage_cycles import (
    DISTURBED,
    ITERATION,
    MOST,
    STAGES,
    Stages,
    interleaving_efficiency,
    longest_cycle,
    shortest_cycle,
    usable,
)
from gantline.models.solvers.matchings import PairsByKind

# Which jobs share devices (Zhao et al., Muri, SIGCOMM 2022, sections 4.2 and 4.3): by repeated matchings, or in chunks of the order.


Kinds = tuple[int, ...]


class Cyclic(Protocol):
    """A job as far as grouping knows it."""

    @property
    def gpus(self) -> int: ...

    @property
    def kind(self) -> int:
        """Which of the stages that grouping knows are its own; one of a kind below zero shares with none."""

    @property
    def step(self) -> float:
        """Seconds of an iteration alone."""


Job = TypeVar("Job", bound=Cyclic)


class Grouping(Generic[Job]):
    """How jobs are grouped on a number of devices; `stages` are those of each kind of job."""

    def __init__(
        self, stages: Sequence[Stages], *, matching: bool = True, worst: bool = False, most: int = MOST,
        disturbed: Sequence[float] = DISTURBED,
    ) -> None:  # fmt: skip
        self._stages, self._matching, self._most, self._disturbed = stages, matching, most, disturbed
        self._cycle = longest_cycle if worst else shortest_cycle
        self._pairs = PairsByKind(self._weight)
        self._periods: dict[Kinds, float] = {}
        self._best: dict[Kinds, float] = {}  # in the best order, whichever one runs

    def form(self, order: Sequence[Job], devices: int) -> list[tuple[Job, ...]]:
        """Groups of the jobs that have a chance to run, in this order: as many of each size as fit where every slot is shared by the most.

        They are joined only while they want more devices than there are, and not where each would be faster if they took turns.
        """
        chunks = self._admitted(order, devices)
        bunches = self._match(chunks, devices) if self._matching else self._join(chunks, devices)
        return [part for bunch in bunches for part in self._apart_if_slower(bunch)]

    def period(self, bunch: Sequence[Job]) -> float:
        """Seconds that an iteration takes each of them."""
        return bunch[0].step if len(bunch) == 1 else self._together(_kinds(bunch))

    def order(self, bunch: Sequence[Job]) -> tuple[int, ...]:
        """The places of the members in the order in which they follow each other."""
        return self._cycle(self._all_stages([job.kind for job in bunch])).order if len(bunch) > 1 else (0,)

    def _admitted(self, order: Sequence[Job], devices: int) -> dict[int, list[list[Job]]]:
        """By size, in order of first appearance: for every slot that fits, the next few jobs of that size."""
        chunks: dict[int, list[list[Job]]] = {}
        for job in order:
            gpus = job.gpus
            each = chunks.setdefault(gpus, [])
            if each and len(each[-1]) < self._most:
                each[-1].append(job)
            elif gpus <= devices:
                devices -= gpus
                each.append([job])
        return chunks

    def _match(self, chunks: Mapping[int, list[list[Job]]], devices: int) -> list[tuple[Job, ...]]:
        """Rounds of matchings, size by size, whose pairs are joined while the jobs want more than there is."""
        sizes: dict[int, list[tuple[Job, ...]]] = {gpus: [(job,) for chunk in each for job in chunk] for gpus, each in chunks.items()}
        excess = sum(gpus * len(bunches) for gpus, bunches in sizes.items()) - devices
        for _ in range(MOST):
            if excess <= 0:
                break
            for gpus, bunches in sizes.items():
                if len(bunches) > 1:
                    excess, sizes[gpus] = self._joined(bunches, gpus, excess)
        return [bunch for bunches in sizes.values() for bunch in bunches]

    def _joined(self, bunches: list[tuple[Job, ...]], gpus: int, excess: int) -> tuple[int, list[tuple[Job, ...]]]:
        """One size after its matching; a pair stands where its later member stood."""
        pairs = self._pairs.match([_kinds(bunch) for bunch in bunches])
        partner = {higher: lower for lower, higher in pairs}
        gone = set(partner.values())
        after: list[tuple[Job, ...]] = []
        for at, bunch in enumerate(bunches):
            if at in gone:
                continue
            if at not in partner:
                after.append(bunch)
            elif excess > 0:
                after.append(bunches[partner[at]] + bunch)
                excess -= gpus
            else:
                after += [bunches[partner[at]], bunch]
        return excess, after

    def _join(self, chunks: Mapping[int, list[list[Job]]], devices: int) -> list[tuple[Job, ...]]:
        """Without matching: each chunk's later jobs join its first while the jobs want more than there is."""
        excess = sum([gpus * len(chunk) for gpus, each in chunks.items() for chunk in each]) - devices
        found: list[tuple[Job, ...]] = []
        for gpus, each in chunks.items():
            for chunk in each:
                joins = min(len(chunk) - 1, math.ceil(excess / gpus)) if excess > 0 else 0
                excess -= gpus * joins
                found.append(tuple(chunk[: joins + 1]))
                found += [(job,) for job in chunk[joins + 1 :]]
        return found

    def _apart_if_slower(self, bunch: tuple[Job, ...]) -> list[tuple[Job, ...]]:
        """Jobs that would be slower together than in turns stay by themselves; the best order is asked even where the worst one runs."""
        if len(bunch) == 1:
            return [bunch]
        kinds = _kinds(bunch)
        if kinds not in self._best:
            unshared = kinds[0] < 0
            self._best[kinds] = math.inf if unshared else self._disturbed[len(kinds) - 1] * shortest_cycle(self._all_stages(kinds)).period
        return [bunch] if self._best[kinds] <= sum([job.step for job in bunch]) else [(job,) for job in bunch]

    def _together(self, kinds: Kinds) -> float:
        """Seconds of an iteration of jobs of these kinds on the same devices."""
        if kinds not in self._periods:
            self._periods[kinds] = self._cycle(self._all_stages(kinds)).period * self._disturbed[len(kinds) - 1]
        return self._periods[kinds]

    def _weight(self, one: Kinds, other: Kinds) -> float:
        """How well two groups interleave; 0: they are too many, or stay alone."""
        both = tuple(sorted(one + other))
        if len(both) > self._most or both[0] < 0:
            return 0.0
        return interleaving_efficiency(self._all_stages(both), self._together(both))

    def _all_stages(self, kinds: Sequence[int]) -> tuple[Stages, ...]:
        return tuple([self._stages[kind] for kind in kinds])


def _kinds(bunch: Sequence[Cyclic]) -> Kinds:
    return (bunch[0].kind,) if len(bunch) == 1 else tuple(sorted([job.kind for job in bunch]))


# Muri on the engine: jobs whose stages interleave well share devices, wherever jobs want more devices than there are.

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

    name = "muri"
    paper = "Zhao et al.: Multi-Resource Interleaving for Deep Learning Training (SIGCOMM 2022)"

    known: bool = parameter(False, "whether what is left of a job is known (Muri-S); else attained service counts (Muri-L)")
    matching: bool = parameter(True, "whether groups come from matchings; off: from chunks of the order")
    ordering: str = parameter("best", "the order in which the members of a group follow each other", one_of=("best", "worst"))
    most: int = parameter(MOST, "jobs that share at most", low=1, high=MOST)
    interval: float = parameter(
        360.0, "seconds after which groups are formed anew although nothing has happened", above=0.0, unit="seconds"
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
