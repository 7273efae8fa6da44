"""`dally-like`: jobs wait for machines that are near each other, for a time that is tuned (after Dally, arXiv 2401.16492)."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.columns import Option
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.core.topology import ACROSS, IN_NODE, IN_RACK, level_of
from gantline.models.model import overrides
from gantline.policies.elastic.pools import Pool, pools, rooms

# How long jobs of one demand wait for a machine, and for a rack: given, or tuned by what waiting has brought.
#
# Tuned timers are the mean and two standard deviations of the waits after which jobs of that demand got a machine (a
# rack) lately: waiting longer than that has hardly ever helped.


ENOUGH = 10  # waits from which on a timer is tuned
_WINDOW = 50  # waits that are remembered per demand and tier


@dataclass
class Timers:
    """Seconds per tier; ``seen`` are the waits (instant, seconds) by "demand/tier"."""

    machine: float
    rack: float
    tuned: bool
    stale: float  # seconds after which a wait says nothing about the present
    now: float
    seen: dict[str, list[list[float]]] = field(default_factory=dict)

    @staticmethod
    def of(wait: str, machine: float, rack: float, stale: float, now: float, waits: dict[str, list[list[float]]]) -> Timers:
        fixed = {"none": (0.0, 0.0), "consolidate": (math.inf, math.inf)}
        if wait in fixed:
            return Timers(*fixed[wait], False, stale, now)
        seen = {key: [each for each in each_wait if now - each[0] <= stale] for key, each_wait in waits.items()}
        return Timers(machine, max(machine, rack), wait == "tuned", stale, now, {key: recent for key, recent in seen.items() if recent})

    def until(self, gpus: int, tier: int) -> float:
        """Seconds that a job waits before it gives up this tier for the next."""
        machine = self._timer(gpus, IN_NODE, self.machine)
        return machine if tier == IN_NODE else max(machine, self._timer(gpus, IN_RACK, self.rack))

    def _timer(self, gpus: int, tier: int, given: float) -> float:
        waits = [waited for _, waited in self.seen.get(_key(gpus, tier), ())] if self.tuned else []
        return statistics.fmean(waits) + 2.0 * statistics.pstdev(waits) if len(waits) >= ENOUGH else given

    def note(self, gpus: int, tier: int, waited: float) -> None:
        """A job got this tier after such a wait."""
        if self.tuned and tier in (IN_NODE, IN_RACK):
            waits = self.seen.setdefault(_key(gpus, tier), [])
            waits.append([self.now, waited])
            del waits[:-_WINDOW]


def _key(gpus: int, tier: int) -> str:
    """Demands that differ by less than twice are one class."""
    return f"{gpus.bit_length()}/{tier}"


# Free devices by tier: on one machine, on machines of one rack, anywhere.

DevicesByNode = dict[int, int]  # node -> devices there


@dataclass
class Offers:
    """Devices of one type that no job holds in the plan so far, and what the machines and racks of that type hold at most."""

    left: dict[int, list[int]]  # node -> devices
    rack: list[int]  # of every node
    machine_size: int
    rack_size: int

    def lowest(self, gpus: int) -> int:
        """The lowest tier on which so many devices can be had at all."""
        return IN_NODE if gpus <= self.machine_size else IN_RACK if gpus <= self.rack_size else ACROSS

    def find(self, gpus: int, tier: int) -> DevicesByNode | None:
        """Where so many devices are free within this tier, on the fullest machine or rack that has them; None: nowhere."""
        room = {node: len(devices) for node, devices in self.left.items() if devices}
        if tier == IN_NODE:
            fits = [(count, node) for node, count in room.items() if count >= gpus]
            return {min(fits)[1]: gpus} if fits else None
        racks: dict[int, int] = {}
        for node, count in room.items():
            racks[self.rack[node]] = racks.get(self.rack[node], 0) + count
        if tier == IN_RACK:
            held = [(count, rack) for rack, count in racks.items() if count >= gpus]
            if not held:
                return None
            rack = min(held)[1]
            return _fill(gpus, sorted((node for node in room if self.rack[node] == rack), key=lambda node: (-room[node], node)), room)
        if sum(racks.values()) < gpus:
            return None
        return _fill(gpus, sorted(room, key=lambda node: (-racks[self.rack[node]], self.rack[node], -room[node], node)), room)

    def take(self, chosen: DevicesByNode) -> list[int]:
        """So many devices of these nodes, which are then no longer free."""
        taken: list[int] = []
        for node, count in chosen.items():
            taken += self.left[node][:count]
            del self.left[node][:count]
        return sorted(taken)

    def give_back(self, devices: Iterable[tuple[int, int]]) -> None:
        """Devices (node, device) are free again."""
        for node, device in devices:
            self.left[node] = sorted([*self.left[node], device])


def _fill(gpus: int, order: list[int], room: DevicesByNode) -> DevicesByNode:
    found: DevicesByNode = {}
    for node in order:
        if gpus <= 0:
            break
        found[node] = min(room[node], gpus)
        gpus -= found[node]
    return found


# The jobs of a pool as delay scheduling sees them: demand, wait, what they had of their ideal speed, where they are.


@dataclass
class DelayedGangs:
    """Lists over the jobs of one pool; ``held`` is what the plan gives so far, at first what each holds already."""

    pool: Pool
    gpus: list[int]
    option: list[int]
    rate: list[float]  # work per second on one machine
    row: list[int]
    since: list[float]  # from when on it waits
    had: list[float]  # work done over what one machine would have done in the time it ran; lower: it lost more to the network
    before: dict[int, list[int]]
    held: dict[int, list[int]]
    given: dict[int, tuple[int, int, float]] = field(default_factory=dict)  # devices, tier and wait of those that start now

    @staticmethod
    def of(pool: Pool, idle: Mapping[str, float]) -> DelayedGangs:
        snapshot, jobs, curves = pool.snapshot, pool.snapshot.jobs, pool.curves
        entry = curves.at_most(pool.of(jobs.gpus))
        entry = np.where((entry < 0) & (curves.count > 0), curves.first[:-1], entry)
        some = entry >= 0
        rate = np.where(some, curves.rate[entry], 1.0)
        ran = pool.of(jobs.attained)
        had = np.divide(pool.of(jobs.done), rate * ran, out=np.ones(len(pool)), where=rate * ran > 0.0)
        row, arrival = pool.of(jobs.rows).tolist(), pool.of(jobs.arrival).tolist()
        devices = ((k, jobs.devices(int(job))) for k, job in enumerate(pool.jobs.tolist()))
        before = {k: sorted(held) for k, held in devices if held}
        # a job that was stopped waits from this instant on
        since = [idle.get(str(r), at if not ran[k] else snapshot.now) for k, (r, at) in enumerate(zip(row, arrival))]
        gpus = np.where(some, curves.size[entry], 0).tolist()
        option = np.where(some, curves.option[entry], -1).tolist()
        return DelayedGangs(pool, gpus, option, rate.tolist(), row, since, had.tolist(), before, dict(before))

    @property
    def now(self) -> float:
        return self.pool.snapshot.now

    @property
    def cluster(self) -> Cluster:
        found: Cluster = self.pool.snapshot.cluster.description
        return found

    @cached_property
    def node(self) -> list[int]:
        """The node of every device."""
        found: list[int] = self.pool.snapshot.cluster.device_node.tolist()
        return found

    @cached_property
    def order(self) -> list[int]:
        """Those that lost most to the network first, of equals those that had least service."""
        service = self.pool.of(self.pool.snapshot.jobs.attained_gpu)
        found: list[int] = np.lexsort((np.arange(len(self.pool)), service, np.round(self.had, 9))).tolist()
        return found

    def nodes_of(self, k: int) -> list[int]:
        return sorted({self.node[device] for device in self.held[k]})

    def seconds_left(self, k: int, nodes: Sequence[int]) -> float:
        """How long a gang has yet to run on these nodes."""
        snapshot = self.pool.snapshot
        job = int(self.pool.jobs[k])
        return float(snapshot.jobs.remaining[job]) * self._slowdown(job, nodes) / self.rate[k]

    def _slowdown(self, job: int, nodes: Sequence[int]) -> float:
        snapshot, jobs = self.pool.snapshot, self.pool.snapshot.jobs
        model = snapshot.performance
        if overrides(model, "slowdown"):
            return float(model.slowdown(snapshot.models[jobs.model[job]], tuple(nodes), self.cluster))
        if len(nodes) < 2:
            return 1.0
        first = int(jobs.option_first[job])
        rate, spread = snapshot.options.F[Option.RATE, first], snapshot.options.F[Option.RATE_SPREAD, first]
        return float(rate / spread) if rate > 0.0 and spread > 0.0 else 1.0

    def cost_of_move(self, k: int) -> float:
        costs = self.pool.snapshot.costs
        return costs.scaled(max(costs.move, costs.resume), self.gpus[k])


# `dally-like`: jobs wait for machines that are near each other, for a time that is tuned (after Dally, arXiv 2401.16492).

_WAITS = ("tuned", "manual", "none", "consolidate")


@dataclass(frozen=True)
class DallyLike(Policy):
    """Offers of free devices in order of what jobs lost to the network; a tier that is not the best is taken only after a wait."""

    name = "dally-like"
    names_devices = True
    paper = "after Sharma et al.: Dally: GPU Cluster Scheduling for Network-Sensitive Deep Learning (arXiv 2401.16492)"
    needs = frozenset({"remaining"})
    usual_round = 60.0

    wait: str = parameter(
        "tuned", "timers 'tuned' by past waits, as given ('manual'), zero ('none') or without end ('consolidate')", one_of=_WAITS
    )
    machine: float = parameter(14_400.0, "seconds for which a job waits for one machine; until tuned", low=0.0, unit="seconds")
    rack: float = parameter(28_800.0, "seconds for which it waits for one rack; until tuned", low=0.0, unit="seconds")
    stale: float = parameter(86_400.0, "seconds after which a past wait is forgotten", above=0.0, finite=True, unit="seconds")
    margin: float = parameter(0.1, "how much less a starving job must have had of its ideal speed than one it stops", low=0.0, high=1.0)
    upgrade: float = parameter(60.0, "seconds that a move to a better tier must gain beyond its cost", low=0.0, unit="seconds")

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        timers = Timers.of(self.wait, self.machine, self.rack, self.stale, snapshot.now, memory.get("waits", {}))
        idle: dict[str, float] = {}
        given: dict[str, tuple[int, int, float]] = {}
        plain = np.flatnonzero(snapshot.jobs.gpus == 0).tolist()  # they want no devices and run as they ask
        rows: list[tuple[int, int, int, tuple[int, ...]]] = [(job, 0, -1, ()) for job in plain]
        until = math.inf
        for pool in pools(snapshot):
            gangs = DelayedGangs.of(pool, memory.get("idle", {}))
            for k in gangs.before:
                if str(gangs.row[k]) in memory.get("given", {}):
                    timers.note(*memory["given"][str(gangs.row[k])])  # it has got what the last plan gave it
            offers = _offers(pool, gangs)
            until = min(until, self._share_out(gangs, offers, timers))
            given |= {str(gangs.row[k]): note for k, note in gangs.given.items()}
            rows += [(int(pool.jobs[k]), gangs.option[k], pool.kind, tuple(held)) for k, held in sorted(gangs.held.items())]
            idle |= {str(gangs.row[k]): gangs.since[k] for k in range(len(pool)) if k not in gangs.held}
        job, option, kind, devices = zip(*rows) if rows else ((), (), (), ())
        gpus = [len(held) if held else -1 for held in devices]
        assigned = Assignments(list(job), option=list(option), gpus=gpus, type=list(kind), devices=list(devices))
        return Plan.assign(assigned, valid_until=until, memory={"idle": idle, "given": given, "waits": timers.seen})

    def _share_out(self, gangs: DelayedGangs, offers: Offers, timers: Timers) -> float:
        """Offers in order, then devices of others for those that starve, then better tiers; the instant at which a wait ends next."""
        ends, starving = math.inf, []
        for k in gangs.order:
            if k in gangs.held or not gangs.gpus[k]:
                continue
            waited, lowest = gangs.now - gangs.since[k], offers.lowest(gangs.gpus[k])
            for tier in range(lowest, ACROSS + 1):
                chosen = offers.find(gangs.gpus[k], tier)
                if chosen is not None:
                    gangs.held[k] = offers.take(chosen)
                    gangs.given[k] = (gangs.gpus[k], tier, waited)
                    break
                if tier < ACROSS and waited + 1e-6 < timers.until(gangs.gpus[k], tier):
                    ends = min(ends, gangs.since[k] + timers.until(gangs.gpus[k], tier))
                    break
            else:
                starving.append(k)
        for k in starving:
            self._make_room(k, gangs, offers)
        for k in gangs.order:
            if k in gangs.before and gangs.held.get(k) == gangs.before[k]:
                self._move_up(k, gangs, offers)
        return max(ends, gangs.now)

    def _make_room(self, k: int, gangs: DelayedGangs, offers: Offers) -> None:
        """Stop gangs that lost less to the network, those that lost least first, if that makes room."""
        victims, room = [], sum(map(len, offers.left.values()))
        for other in reversed(gangs.order):
            if room >= gangs.gpus[k]:
                break
            if gangs.held.get(other) and gangs.held[other] == gangs.before.get(other) and gangs.had[other] > gangs.had[k] + self.margin:
                victims.append(other)
                room += len(gangs.held[other])
        if room < gangs.gpus[k] or not victims:
            return
        for other in victims:
            offers.give_back((gangs.node[device], device) for device in gangs.held.pop(other))
        for tier in range(offers.lowest(gangs.gpus[k]), ACROSS + 1):
            chosen = offers.find(gangs.gpus[k], tier)
            if chosen is not None:
                gangs.held[k] = offers.take(chosen)
                return

    def _move_up(self, k: int, gangs: DelayedGangs, offers: Offers) -> None:
        """Move a gang to a better tier that is free now, if it then ends sooner by more than the move costs."""
        nodes = gangs.nodes_of(k)
        tier = level_of(gangs.cluster, nodes)
        for better in range(offers.lowest(gangs.gpus[k]), tier) if tier > IN_NODE else ():
            chosen = offers.find(gangs.gpus[k], better)
            if chosen is not None:
                if gangs.seconds_left(k, nodes) - gangs.seconds_left(k, list(chosen)) > gangs.cost_of_move(k) + self.upgrade:
                    offers.give_back((gangs.node[device], device) for device in gangs.held[k])
                    gangs.held[k] = offers.take(chosen)
                return


def _offers(pool: Pool, gangs: DelayedGangs) -> Offers:
    """What is free while every gang keeps what it holds."""
    cluster = pool.snapshot.cluster
    held = {device for devices in gangs.held.values() for device in devices}
    left = {node: [device for device in devices if device not in held] for node, devices in rooms(pool).items()}
    mine = cluster.node_type == pool.kind
    rack = cluster.node_rack
    sizes = np.where(mine & cluster.node_up, cluster.node_gpus, 0)
    return Offers(left, rack.tolist(), int(sizes.max(initial=0)), int(np.bincount(rack, sizes).max(initial=0)))
