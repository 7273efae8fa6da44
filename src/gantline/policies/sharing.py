"""Parts of GPUs: jobs that ask for less than one run together, in the order of another policy.

In Alibaba's trace of 2023 (Weng et al., "Beware of Fragmentation", ATC 2023, section 2) most jobs ask for a part of a
GPU, and the scheduler packs them. Here the order comes from any policy that ranks. The jobs are walked in that order:
a running job stays where it is, others get the devices on which they leave least room (best fit) or those that a rule
of FGD's comparison prefers, and only a policy that preempts takes what jobs behind hold. Demands on one device sum up
to one at most, and such jobs are taken not to slow each other down: a log's durations were measured on a part of a
GPU already.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import FREE, HOST_RESOURCES
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import UsageError
from gantline.core.facts import NamedRule
from gantline.core.host_resources import amounts_beside
from gantline.core.options import Option
from gantline.core.plan import Assignments, Misfit, Mode, Plan, Ranking
from gantline.core.policy import Policy, param
from gantline.core.snapshot import Snapshot
from gantline.policies.placement.parts.filling import Arrivals, fill
from gantline.policies.placement.parts.fragments import WHOLE, PartNodes, Shape, Shapes, TypicalMix, shape_columns, typical_mix
from gantline.policies.placement.parts.scores import PART_RULES, Scoring
from gantline.policies.registry import inner_policy

_DECIMALS = 6  # of a thousandth: sums of parts are rounded to it, so that 0.7 fits beside 0.1 and 0.2


class PartPlacement:
    """A rule on the nodes of a snapshot."""

    def __init__(self, rule: str, snapshot: Snapshot, shapes: list[Shape]) -> None:
        cluster, nodes = snapshot.cluster, snapshot.cluster.node_type
        self._node = cluster.device_node
        self._first = np.searchsorted(self._node, np.arange(len(nodes)))
        self._count: Ints = np.bincount(self._node, minlength=len(nodes)).astype(np.int64)
        self._model = nodes.astype(np.int64)
        self._accepted: dict[str, Bools] = {}
        self._mix: TypicalMix = typical_mix(shapes, self._accepts)
        self._given = np.zeros((len(nodes), max(1, int(self._count.max(initial=1))) + 1), dtype=np.int64)  # node x kind: jobs
        self._behind = np.zeros_like(self._given)
        widest = np.arange(self._given.shape[1] - 1)
        self._there: Bools = widest < self._count[:, None]  # node x place: whether the node has so many devices
        self._device: Ints = np.where(self._there, self._first[:, None] + widest, 0)
        self._nodes = PartNodes.idle(np.zeros(len(nodes)), np.zeros(len(nodes)), self._count, self._model)  # written anew for each search
        self._arrival = Arrivals(np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((2, 1)))
        self._shapes: dict[Shape, Shapes] = {}
        self._draw = snapshot.rng("parts of GPUs")
        most = WHOLE * float(self._count.max(initial=1))
        self._scoring = Scoring(PART_RULES[rule], False, max(WHOLE, WHOLE * float(cluster.node_cpus_free.max(initial=1.0))), most)

    @property
    def widest(self) -> int:
        """GPUs of the largest node."""
        return int(self._count.max(initial=0))

    def count(self, owner: Ints, device: Ints, demand: Floats, *, given: int = 0, behind: int = 0) -> None:
        """So many more of these jobs, a row for each of their devices, have been given them, or hold them and have not had their turn.

        Rules that keep kinds together, or fill nodes in use first, look at that.
        """
        pairs, devices = np.unique(owner * len(self._count) + self._node[device], return_counts=True)
        job, node = np.divmod(pairs, len(self._count))
        kind = np.where(demand[job] >= 1.0, devices, 0)
        np.add.at(self._given, (node, kind), given)
        np.add.at(self._behind, (node, kind), behind)

    def find(self, option: Option, demand: float, open_to: Bools, fill_of: Floats, cpus: Floats, *, evict: bool) -> list[int] | None:
        """Devices for a job on one node: one of which it takes a part, or whole ones; None: no node has room.

        `fill_of` says how much of each device is taken, `open_to` which may be used at all, and have what else the job needs beside them;
        `evict`: jobs that have not had their turn do not count.
        """
        free = np.where(open_to, np.round(WHOLE * (1.0 - fill_of), _DECIMALS), 0.0)
        nodes = self._nodes
        nodes.cpu[:] = WHOLE * cpus
        nodes.free[:] = np.where(self._there, free[self._device], 0.0)
        nodes.kinds[:] = self._given if evict else self._given + self._behind
        nodes.pods[:] = nodes.kinds.sum(axis=1)
        shape = Shape(WHOLE * option.cpus * option.gpus, np.round(WHOLE * demand, _DECIMALS), option.gpus, str(option.type))
        if shape not in self._shapes:
            self._shapes[shape] = shape_columns([shape], self._accepts)
        self._arrival.draw[:] = self._draw.random((2, 1))
        found = fill(self._scoring, nodes, self._arrival, self._shapes[shape], self._mix)
        node = int(found.node[0])
        if node < 0:
            return None
        first = int(self._first[node])
        if found.device[0] >= 0:
            return [first + int(found.device[0])]
        return [first + device for device in range(int(self._count[node])) if free[first + device] >= WHOLE][: option.gpus]

    def _accepts(self, models: str) -> Bools:
        if models not in self._accepted:
            kinds = range(int(self._model.max(initial=0)) + 1)
            named = {int(kind) for kind in models.split("|")} if models else {*kinds}
            self._accepted[models] = np.array([kind in named for kind in kinds], dtype=np.bool_)
        return self._accepted[models]


DEMAND = "gpu_demand"
"""The metric of a job that says how many GPUs it needs, where that is less than it asks for."""
_SLACK = 1e-9
_Place = tuple[int, int, list[int]]  # job, option, devices
_Asks = tuple[object, ...]


@dataclass(frozen=True)
class Sharing(Policy):
    """Jobs that ask for a part of a GPU (`gpu_demand` below one) run together on one, in the order of another policy."""

    name: ClassVar[str] = "sharing"
    paper: ClassVar[str] = "Weng et al.: Beware of Fragmentation (ATC 2023), section 2; best fit"
    shares_devices: ClassVar[bool] = True
    names_devices: ClassVar[bool] = True
    order: str = field(default="fifo", metadata={"help": "the policy whose order counts: srtf, tiresias limits=3600, ..."})

    seats: str = field(
        default="fullest",
        metadata=param("which of the devices with room a job gets, as in FGD's comparison", one_of=("fullest", *PART_RULES)),
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
        devices = _SharedDevices(snapshot, self._part_rule(snapshot.facts.placement))
        assignments = devices.serve(plan.ranking)
        return Plan.assign(assignments, valid_until=plan.valid_until, memory=plan.memory)

    def _part_rule(self, placement: NamedRule | str) -> str:
        """The rule for places: its own, or the run's where that is one for parts of GPUs."""
        name = placement if isinstance(placement, str) else placement.name
        if name not in PART_RULES or name == self.seats:
            return self.seats
        if self.seats != "fullest":
            raise UsageError(f"seats by '{self.seats}' and placement '{name}'", where="policy 'sharing'", fix="give one of the two")
        return name

    def _ranks(self) -> Policy:
        return inner_policy(self.order, self.name, "order")


class _SharedDevices:
    """What each device has been given in this plan, and what running jobs that have not had their turn hold."""

    def __init__(self, snapshot: Snapshot, rule: str) -> None:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        self.jobs, self.node, self.kind = jobs, cluster.device_node, cluster.node_type[cluster.device_node]
        wanted = jobs.metric(DEMAND)
        part = (jobs.gpus == 1) & (wanted > 0.0) & (wanted < 1.0)
        self.demand: Floats = np.where(part, wanted, 1.0)
        self.option: Ints = np.where((jobs.option >= 0) & (jobs.option < jobs.option_count), jobs.option, 0)
        self.amounts: Floats = snapshot.options.F[OptionColumn.CPUS : OptionColumn.CPUS + HOST_RESOURCES, jobs.option_first + self.option]
        self.asks = _asks(snapshot, self.demand)
        self.fixed: Bools = jobs.running & jobs.locked
        self.given: Floats = np.zeros(len(self.node))
        self.placement = None if rule == "fullest" else PartPlacement(rule, snapshot, [self._shape(job) for job in range(len(jobs))])
        running = np.flatnonzero(jobs.running).tolist()
        self.behind: Floats = np.zeros(len(self.node))
        self.host_resources: Floats = np.stack([cluster.node_cpus_free, cluster.node_memory_free, cluster.node_storage_free])  # free
        # until a newcomer takes from jobs behind it, every running job can stay
        self.contested = bool((self.host_resources < -_SLACK).any())
        owner, device = self._devices_of(running)
        self._count(owner, device, behind=1)
        self._take_host_resources(device, -self.amounts[:, owner])
        held = np.zeros(len(self.node), dtype=np.bool_)
        held[device] = True
        self.contested = self.contested or bool((self.behind > 1.0 + _SLACK).any())
        self.usable: Bools = cluster.device_open & (held | (cluster.device_holder == FREE))  # for newcomers

    def serve(self, ranking: Ranking) -> Assignments:
        """What each job gets, in the order of the ranking; ties fall to the earlier arrival."""
        jobs, key = self.jobs, ranking.key
        first = self.fixed.astype(np.int64) * 2 + (jobs.running & (not ranking.preempt))
        left_out: list[bool] = (np.isposinf(key) & ~self.fixed).tolist()
        running: list[bool] = jobs.running.tolist()
        found: list[_Place] = []
        stay: list[int] = []  # have had their turn, and are not counted yet
        closed, in_vain = False, set[_Asks]()
        for job in np.lexsort((np.arange(len(jobs)), key, -first)).tolist():
            if running[job] and not left_out[job] and not self.contested:
                stay.append(job)
                continue
            if not running[job] and (left_out[job] or closed or self.asks[job] in in_vain):
                continue
            found += self._let_stay(stay)
            stay = []
            place = self._turn(job, left_out[job], evict=ranking.preempt, newcomer_may=not closed and self.asks[job] not in in_vain)
            if place is not None:
                found.append(place)
            elif not running[job]:
                in_vain.add(self.asks[job])  # those behind it hold nothing that has not been counted
                closed = closed or ranking.misfit == Misfit.STOP
        return self._assignments([*found, *self._let_stay(stay)])

    def _turn(self, job: int, left_out: bool, *, evict: bool, newcomer_may: bool) -> _Place | None:
        """Where one job goes that does not simply stay."""
        runs = bool(self.jobs.running[job])
        if runs:
            self._count(*self._devices_of([job]), behind=-1)
        if left_out:
            return None
        place = self._stay(job) if runs else None
        if place is None and newcomer_may:
            place = self._find(job, evict=False)
            if place is None and evict:
                place = self._find(job, evict=True)
                self.contested = self.contested or place is not None
        if place is not None:
            self._give(job, *place)
        return None if place is None else (job, *place)

    def _devices_of(self, jobs: list[int]) -> tuple[Ints, Ints]:
        """The jobs once for each of their devices, and these devices."""
        held = [self.jobs.devices(job) for job in jobs]
        return np.repeat(np.array(jobs, dtype=np.int64), [len(each) for each in held]), np.array([*chain(*held)], dtype=np.int64)

    def _let_stay(self, jobs: list[int]) -> list[_Place]:
        """Running jobs whose devices are not in dispute keep them, all at once."""
        if jobs:
            owner, device = self._devices_of(jobs)
            self._count(owner, device, given=1, behind=-1)
            self._take_host_resources(device, self.amounts[:, owner])
        return [(job, variant, self._devices(job)) for job, variant in zip(jobs, self.option[jobs].tolist())]

    def _count(self, owner: Ints, device: Ints, *, given: int = 0, behind: int = 0) -> None:
        """So many more of these jobs have been given these devices, or hold them and have not had their turn."""
        demand = self.demand[owner]
        if given:
            np.add.at(self.given, device, given * demand)
        if behind:
            np.add.at(self.behind, device, behind * demand)
        if self.placement is not None:
            self.placement.count(owner, device, self.demand, given=given, behind=behind)

    def _take_host_resources(self, devices: Ints, amounts: Floats) -> None:
        """So much of CPUs, memory and storage on the nodes of these devices."""
        for free, taken in zip(self.host_resources, amounts):
            np.subtract.at(free, self.node[devices], taken)

    def _assignments(self, places: list[_Place]) -> Assignments:
        devices = [tuple(given) for _, _, given in places]
        parts = [bool(given) and self.demand[job] < 1.0 for job, _, given in places]
        columns: dict[str, list[int]] = {"option": [variant for _, variant, _ in places]}
        if any(parts):
            columns["group"] = [given[0] if part else -1 for given, part in zip(devices, parts)]
            columns["mode"] = [int(Mode.INTERLEAVE if part else Mode.EXCLUSIVE) for part in parts]
        return Assignments([job for job, _, _ in places], devices=devices, **columns)

    def _variants(self, job: int) -> list[Option]:
        return self.jobs.options(job)

    def _devices(self, job: int) -> list[int]:
        return list(self.jobs.devices(job))

    def _shape(self, job: int) -> Shape:
        """What it asks for, as the rules for parts of GPUs read it; of several options the first."""
        option, types = self._variants(job)[0], sorted({str(variant.type) for variant in self._variants(job)})
        return Shape(WHOLE * option.cpus * option.gpus, WHOLE * float(self.demand[job]) * (option.gpus > 0), option.gpus, "|".join(types))

    def _stay(self, job: int) -> tuple[int, list[int]] | None:
        """Where it runs, unless a job before it has taken that."""
        devices, variant = self._devices(job), int(self.option[job])
        free = self.given[devices] + self.demand[job] <= 1.0 + _SLACK
        if self.fixed[job] or (free.all() and self._room(self._variants(job)[variant], devices)):
            return variant, devices
        return None

    def _room(self, option: Option, devices: list[int]) -> bool:
        nodes, count = np.unique(self.node[devices], return_counts=True)
        enough = self.host_resources[:, nodes] + _SLACK >= count * np.array(amounts_beside(option))[:, None]
        return bool(enough.all())

    def _find(self, job: int, evict: bool) -> tuple[int, list[int]] | None:
        """The first of its options for which there is room, with what jobs behind it hold or without."""
        fill = self.given if evict else self.given + self.behind
        for variant, option in enumerate(self._variants(job)):
            if self.placement is not None and 0 < option.gpus <= self.placement.widest:
                whole = option.gpus * np.array(amounts_beside(option))[:, None]  # on one node
                room = self.usable & np.all(self.host_resources + _SLACK >= whole, axis=0)[self.node]
                chosen = self.placement.find(option, float(self.demand[job]), room, fill, self.host_resources[0], evict=evict)
                if chosen is not None:
                    return variant, chosen
                continue
            fits = self.usable & (self.kind == option.type) & (fill + self.demand[job] <= 1.0 + _SLACK)
            enough: Bools = np.all(self.host_resources + _SLACK >= np.array(amounts_beside(option))[:, None], axis=0)
            fits &= enough[self.node]
            devices = self._gang(np.flatnonzero(fits), option) if option.gpus != 1 else self._fullest(np.flatnonzero(fits))
            if devices is not None:
                return variant, devices
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
        for amount, each in zip(self.host_resources[:, nodes], amounts_beside(option)):
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

    def _give(self, job: int, variant: int, devices: list[int]) -> None:
        taken = np.array(devices, dtype=np.int64)
        self._count(np.full(len(taken), job), taken, given=1)
        amounts = np.array(amounts_beside(self._variants(job)[variant]))
        self.contested = self.contested or bool(amounts.any())  # it may take of a node what jobs behind it hold
        self._take_host_resources(taken, amounts)


def _asks(snapshot: Snapshot, demand: Floats) -> list[_Asks]:
    """What each job asks for, as far as its place depends on that: equal for jobs that are alike."""
    jobs, variants = snapshot.jobs, snapshot.options
    columns = [
        variants.I[OptionColumn.TYPE],
        variants.I[OptionColumn.GPUS],
        *variants.F[OptionColumn.CPUS : OptionColumn.CPUS + HOST_RESOURCES],
    ]
    count, ends = jobs.option_count, np.cumsum(jobs.option_count)
    entry = np.arange(count.sum()) + np.repeat(jobs.option_first - ends + count, count)
    rows = list(zip(*(column[entry].tolist() for column in columns)))
    return [(part, *rows[end - some : end]) for part, some, end in zip(demand.tolist(), count.tolist(), ends.tolist())]
