"""`dally-like`: jobs wait for machines that are near each other, for a time that is tuned (after Dally, arXiv 2401.16492)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.core.topology import ACROSS, IN_NODE, level_of
from gantline.policies.elastic.pools import Pool, pools, rooms
from gantline.systems.dally.policies.delayed_gangs import DelayedGangs
from gantline.systems.dally.policies.offers import Offers
from gantline.systems.dally.policies.timers import Timers

_WAITS = ("tuned", "manual", "none", "consolidate")


@dataclass(frozen=True)
class DallyLike(Policy):
    """Offers of free devices in order of what jobs lost to the network; a tier that is not the best is taken only after a wait."""

    name: ClassVar[str] = "dally-like"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = "after Sharma et al.: Dally: GPU Cluster Scheduling for Network-Sensitive Deep Learning (arXiv 2401.16492)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    usual_round: ClassVar[float] = 60.0

    wait: str = field(
        default="tuned",
        metadata=about("timers 'tuned' by past waits, as given ('manual'), zero ('none') or without end ('consolidate')", one_of=_WAITS),
    )
    machine: float = field(
        default=14_400.0, metadata=about("seconds for which a job waits for one machine; until tuned", low=0.0, unit="seconds")
    )
    rack: float = field(default=28_800.0, metadata=about("seconds for which it waits for one rack; until tuned", low=0.0, unit="seconds"))
    stale: float = field(
        default=86_400.0, metadata=about("seconds after which a past wait is forgotten", above=0.0, finite=True, unit="seconds")
    )
    margin: float = field(
        default=0.1, metadata=about("how much less a starving job must have had of its ideal speed than one it stops", low=0.0, high=1.0)
    )
    upgrade: float = field(
        default=60.0, metadata=about("seconds that a move to a better tier must gain beyond its cost", low=0.0, unit="seconds")
    )

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
                seats = offers.find(gangs.gpus[k], tier)
                if seats is not None:
                    gangs.held[k] = offers.take(seats)
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
            seats = offers.find(gangs.gpus[k], tier)
            if seats is not None:
                gangs.held[k] = offers.take(seats)
                return

    def _move_up(self, k: int, gangs: DelayedGangs, offers: Offers) -> None:
        """Move a gang to a better tier that is free now, if it then ends sooner by more than the move costs."""
        nodes = gangs.nodes_of(k)
        tier = level_of(gangs.cluster, nodes)
        for better in range(offers.lowest(gangs.gpus[k]), tier) if tier > IN_NODE else ():
            seats = offers.find(gangs.gpus[k], better)
            if seats is not None:
                if gangs.seconds_left(k, nodes) - gangs.seconds_left(k, list(seats)) > gangs.cost_of_move(k) + self.upgrade:
                    offers.give_back((gangs.node[device], device) for device in gangs.held[k])
                    gangs.held[k] = offers.take(seats)
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
