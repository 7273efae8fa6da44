"""Parts of GPUs: jobs that ask for less than one run together, in the order of another policy.

In Alibaba's trace of 2023 (Weng et al., "Beware of Fragmentation", ATC 2023, section 2) most jobs ask for a part of a GPU, and the
scheduler packs them. Here the order comes from any policy that ranks. The jobs are walked in that order: a running job stays where it is,
others get the devices on which they leave least room (best fit), and only a policy that preempts takes what jobs behind hold. Demands on
one device sum up to one at most, and such jobs are taken not to slow each other down: a log's durations were measured on a part of a GPU
already.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.beside import amounts_beside
from gantline.core.errors import UsageError
from gantline.core.facts import NamedRule
from gantline.core.options import Option
from gantline.core.plan import Assignment, Misfit, Mode, Plan, Ranking
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.placement.parts.columns import WHOLE
from gantline.placement.parts.scores import PART_RULES
from gantline.placement.parts.typical import Shape
from gantline.policies.part_seats import PartSeats

DEMAND = "gpu_demand"
"""The metric of a job that says how many GPUs it needs, where that is less than it asks for."""
_SLACK = 1e-9


@dataclass(frozen=True)
class Sharing(Policy):
    """Jobs that ask for a part of a GPU (`gpu_demand` below one) run together on one, in the order of another policy."""

    name: ClassVar[str] = "sharing"
    paper: ClassVar[str] = "Weng et al.: Beware of Fragmentation (ATC 2023), section 2; best fit"
    shares_devices: ClassVar[bool] = True
    names_devices: ClassVar[bool] = True
    order: str = field(default="fifo", metadata={"help": "the policy whose order counts: fifo, srtf, las, tiresias, ..."})

    seats: str = field(
        default="fullest",
        metadata=about("which of the devices with room a job gets, as in FGD's comparison", one_of=("fullest", *PART_RULES)),
    )

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self._ranks().needs)

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = self._ranks().decide(snapshot)
        if plan.ranking is None:
            raise UsageError(f"'{self.order}' does not rank jobs", where="policy 'sharing'", fix="--set order=srtf, las, tiresias, ...")
        if plan.ranking.placement is not None:
            what = f"'{self.order}' names the placement '{plan.ranking.placement}', and here parts of devices are given"
            raise UsageError(what, where="policy 'sharing'", fix="--set order=srtf, las, tiresias, ...")
        desk = _Desk(snapshot, self._seats(snapshot.facts.placement))
        assignments = desk.serve(plan.ranking)
        return Plan.assign(assignments, valid_until=plan.valid_until, memory=plan.memory)

    def _seats(self, placement: NamedRule | str) -> str:
        """The rule for seats: its own, or the run's where that is one for parts of GPUs."""
        name = placement if isinstance(placement, str) else placement.name
        if name not in PART_RULES or name == self.seats:
            return self.seats
        if self.seats != "fullest":
            raise UsageError(f"seats by '{self.seats}' and placement '{name}'", where="policy 'sharing'", fix="give one of the two")
        return name

    def _ranks(self) -> Policy:
        from gantline.policies.registry import make_policy

        if self.order == self.name:
            raise UsageError("it cannot be its own order", where="policy 'sharing'", fix="--set order=fifo")
        return make_policy(self.order)


class _Desk:
    """What each device has been given in this plan, and what running jobs that have not had their turn hold."""

    def __init__(self, snapshot: Snapshot, rule: str) -> None:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        self.jobs, self.node, self.kind = jobs, cluster.device_node, cluster.node_type[cluster.device_node]
        wanted = jobs.metric(DEMAND)
        part = (jobs.gpus == 1) & (wanted > 0.0) & (wanted < 1.0)
        self.demand: Floats = np.where(part, wanted, 1.0)
        self._known: dict[int, tuple[Option, ...]] = {}
        self.fixed: Bools = jobs.running & jobs.locked
        self.given: Floats = np.zeros(len(self.node))
        self.behind: Floats = np.zeros(len(self.node))
        self.beside: Floats = np.stack([cluster.node_cpus_free, cluster.node_memory_free, cluster.node_storage_free])  # free
        self.seats = None if rule == "fullest" else PartSeats(rule, snapshot, [self._shape(job) for job in range(len(jobs))])
        held: Bools = np.zeros(len(self.node), dtype=np.bool_)
        for job in np.flatnonzero(jobs.running).tolist():
            devices = self._devices(job)
            held[devices] = True
            self.behind[devices] += self.demand[job]
            if self.seats is not None:
                self.seats.count(devices, float(self.demand[job]))
            self._take(job, self._ways(job)[self._option(job)], devices, -1.0)
        self.usable: Bools = cluster.device_open & (held | (cluster.device_holder == c.FREE))  # for newcomers

    def serve(self, ranking: Ranking) -> list[Assignment]:
        """What each job gets, in the order of the ranking; ties fall to the earlier arrival."""
        jobs, key = self.jobs, ranking.key
        first = self.fixed.astype(np.int64) * 2 + (jobs.running & (not ranking.preempt))
        found: list[Assignment] = []
        closed, in_vain = False, set[tuple[object, ...]]()
        for job in np.lexsort((np.arange(len(jobs)), key, -first)).tolist():
            runs = bool(jobs.running[job])
            if runs:
                self.behind[self._devices(job)] -= self.demand[job]
            if np.isposinf(key[job]) and not self.fixed[job]:
                continue
            place = self._stay(job) if runs else None
            alike = (self.demand[job], self._ways(job))
            if place is None and not closed and alike not in in_vain:
                place = self._find(job, evict=False) or (self._find(job, evict=True) if ranking.preempt else None)
            if place is not None:
                found.append(self._give(job, *place))
                continue
            if not runs:
                in_vain.add(alike)  # those behind it hold nothing that has not been counted
                closed = closed or ranking.misfit == Misfit.STOP
        return found

    def _ways(self, job: int) -> tuple[Option, ...]:
        if job not in self._known:
            self._known[job] = tuple(self.jobs.options(job))
        return self._known[job]

    def _devices(self, job: int) -> list[int]:
        return list(self.jobs.devices(job))

    def _shape(self, job: int) -> Shape:
        """What it asks for, as the rules for parts of GPUs read it; of several options the first."""
        option, types = self._ways(job)[0], sorted({str(way.type) for way in self._ways(job)})
        return Shape(WHOLE * option.cpus * option.gpus, WHOLE * float(self.demand[job]) * (option.gpus > 0), option.gpus, "|".join(types))

    def _option(self, job: int) -> int:
        return int(self.jobs.option[job]) if 0 <= self.jobs.option[job] < self.jobs.option_count[job] else 0

    def _take(self, job: int, option: Option, devices: Iterable[int], sign: float = 1.0) -> None:
        for device in devices:
            self.beside[:, self.node[device]] -= sign * np.array(amounts_beside(option))

    def _stay(self, job: int) -> tuple[int, list[int]] | None:
        """Where it runs, unless a job before it has taken that."""
        devices, way = self._devices(job), self._option(job)
        free = self.given[devices] + self.demand[job] <= 1.0 + _SLACK
        if self.fixed[job] or (free.all() and self._room(self._ways(job)[way], devices)):
            return way, devices
        return None

    def _room(self, option: Option, devices: list[int]) -> bool:
        nodes, count = np.unique(self.node[devices], return_counts=True)
        enough = self.beside[:, nodes] + _SLACK >= count * np.array(amounts_beside(option))[:, None]
        return bool(enough.all())

    def _find(self, job: int, evict: bool) -> tuple[int, list[int]] | None:
        """The first of its options for which there is room, with what jobs behind it hold or without."""
        fill = self.given if evict else self.given + self.behind
        for way, option in enumerate(self._ways(job)):
            if self.seats is not None and 0 < option.gpus <= self.seats.widest:
                whole = option.gpus * np.array(amounts_beside(option))[:, None]  # on one node
                room = self.usable & np.all(self.beside + _SLACK >= whole, axis=0)[self.node]
                seat = self.seats.find(option, float(self.demand[job]), room, fill, self.beside[0])
                if seat is not None:
                    self.seats.count(seat, float(self.demand[job]))
                    return way, seat
                continue
            fits = self.usable & (self.kind == option.type) & (fill + self.demand[job] <= 1.0 + _SLACK)
            enough: Bools = np.all(self.beside + _SLACK >= np.array(amounts_beside(option))[:, None], axis=0)
            fits &= enough[self.node]
            devices = self._gang(np.flatnonzero(fits), option) if option.gpus != 1 else self._fullest(np.flatnonzero(fits))
            if devices is not None:
                return way, devices
        return None

    def _fullest(self, devices: Ints) -> list[int] | None:
        """The one device that is left with least room; of those that jobs behind hold, the one that costs them least."""
        if not len(devices):
            return None
        fill = self.given[devices] + self.behind[devices]
        best = np.lexsort((devices, -fill, np.maximum(fill - 1.0, 0.0)))
        return [int(devices[best[0]])]

    def _gang(self, devices: Ints, option: Option) -> list[int] | None:
        """Devices of one node, the tightest that fits, else of the widest nodes."""
        nodes, count = np.unique(self.node[devices], return_counts=True)
        for amount, each in zip(self.beside[:, nodes], amounts_beside(option)):
            count = np.minimum(count, np.floor((amount + _SLACK) / each)).astype(np.int64) if each > 0.0 else count
        if count.sum() < option.gpus:
            return None
        whole = np.flatnonzero(count >= option.gpus)
        order = [whole[np.argmin(count[whole])]] if len(whole) else np.argsort(-count, kind="stable").tolist()
        chosen: list[int] = []
        for at in order:
            there = devices[self.node[devices] == nodes[at]]
            quiet = there[np.argsort(self.behind[there], kind="stable")]
            chosen += quiet[: min(int(count[at]), option.gpus - len(chosen))].tolist()
            if len(chosen) == option.gpus:
                break
        return chosen

    def _give(self, job: int, way: int, devices: list[int]) -> Assignment:
        self.given[devices] += self.demand[job]
        self._take(job, self._ways(job)[way], devices)
        if not devices:
            return Assignment(job, option=way)
        if self.demand[job] < 1.0:
            return Assignment(job, option=way, devices=tuple(devices), group=devices[0], mode=Mode.INTERLEAVE)
        return Assignment(job, option=way, devices=tuple(devices))
