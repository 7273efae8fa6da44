"""`heet-like`: elastic configurations on several device types, after Heet (ASPLOS 2024), of which only the outline is public."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.phases import CHECKPOINTING
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.systems.heet.policies.matching import match
from gantline.systems.heet.policies.prices import price_all
from gantline.systems.heet.policies.trading import trade
from gantline.systems.heet.policies.ways import Way, put_to_the_test, read_ways


@dataclass(frozen=True)
class HeetLike(Policy):
    """Estimated speeds of all configurations, a price for each, matching of jobs and free devices, then trades among running jobs."""

    name: ClassVar[str] = "heet-like"
    paper: ClassVar[str] = "after Mo, Xu, Xu: Heet: Accelerating Elastic Training in Heterogeneous Deep Learning Clusters (ASPLOS 2024)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    profile: str = field(
        default="three", metadata=about("measured before a start: 'three' configurations, or 'all'", one_of=("three", "all"))
    )
    power: float = field(default=1.0, metadata=about("how much efficiency counts in a price (lambda)", low=0.0, finite=True))
    kappa: float = field(default=1.0, metadata=about("how much a price grows with what others wait for", low=0.0, finite=True))
    trades: int = field(default=8, metadata=about("trades at most per decision; 0: none", low=0))
    restart: float = field(
        default=30.0, metadata=about("seconds that a trade must gain for each job that it changes", low=0.0, finite=True, unit="seconds")
    )
    residence: float = field(
        default=300.0, metadata=about("seconds for which a job keeps what it was given", above=0.0, finite=True, unit="seconds")
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        jobs, capacity = snapshot.jobs, snapshot.cluster.capacity.tolist()
        epoch = math.floor(snapshot.now / self.residence + 1e-9)
        until = (epoch + 1) * self.residence
        cause = [epoch, jobs.rows.tolist(), capacity, (jobs.locked | (jobs.phase >= CHECKPOINTING)).tolist()]
        rows = {int(row): job for job, row in enumerate(jobs.rows.tolist())}
        if memory.get("cause") == cause:
            kept = {rows[int(row)]: (way[0], way[1]) for row, way in memory["grants"].items()}
            return _plan(snapshot, kept, until, memory)
        ways, remembered = read_ways(snapshot, memory, self.profile)
        since = memory.get("since", {})
        young = {job for job in ways.held if snapshot.now - since.get(str(jobs.rows[job]), -math.inf) < self.residence - 1e-6}
        grants = dict(ways.held)
        free = list(ways.free)
        for kind, count in grants.values():
            free[kind] -= count
        prices = price_all(ways, capacity, self.kappa, self.power)
        match(prices, grants, free, young)
        if self.trades and trade(prices, grants, free, young, self.restart, self.trades):
            match(prices, grants, free, young)
        changed = {job for job, way in grants.items() if ways.held.get(job) != way}
        remembered |= {
            "cause": cause,
            "believed": put_to_the_test(ways, grants, jobs.rows.tolist()),
            "grants": {str(jobs.rows[job]): list(way) for job, way in grants.items()},
            "since": {
                str(jobs.rows[job]): snapshot.now if job in changed else since.get(str(jobs.rows[job]), snapshot.now) for job in grants
            },
        }
        return _plan(snapshot, grants, until, remembered, _note(memory, remembered))


def _note(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """How far beliefs were off, reported whenever twice as many have been tested."""
    tried, was = after.get("errors", [0, 0.0]), before.get("errors", [0, 0.0])
    if tried[0] < 8 or tried[0].bit_length() == was[0].bit_length():
        return ()
    return (f"speeds of {tried[0]} configurations, estimated before they were tried, were {tried[1] / tried[0]:.1%} off on average",)


def _plan(snapshot: Snapshot, grants: dict[int, Way], until: float, memory: dict[str, Any], notes: tuple[str, ...] = ()) -> Plan:
    none = np.flatnonzero(snapshot.jobs.gpus == 0).tolist()
    held = sorted(grants, key=lambda job: (grants[job] != (int(snapshot.jobs.type[job]), int(snapshot.jobs.held[job])), job))
    job, kind, gpus = [*none, *held], [-1] * len(none), [-1] * len(none)
    kind += [grants[each][0] for each in held]
    gpus += [grants[each][1] for each in held]
    return Plan.assign(Assignments(job, type=kind, gpus=gpus), valid_until=until, memory=memory, notes=notes)
