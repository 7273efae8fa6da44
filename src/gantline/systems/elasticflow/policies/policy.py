"""`elasticflow` and `edf`: policies for jobs with deadlines."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.plan import Plan, Refusal, Reservation
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.layouts import TypeLayout
from gantline.policies.elastic.pools import DevicesOf, Pool, plan_of, pools
from gantline.systems.elasticflow.policies.admission_control import AdmissionControl, Decided, plain, restored
from gantline.systems.elasticflow.policies.settings import DeadlinePolicy

_WHY = "its deadline cannot be met beside those that were promised"


@dataclass(frozen=True)
class _Deadlines(DeadlinePolicy):
    """Decides when a job arrives or leaves, the devices change, or a plan changes; in between the last answer holds."""

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        found = list(pools(snapshot))
        cause = [snapshot.jobs.rows.tolist(), [[pool.kind, pool.capacity, *pool.jobs.tolist()] for pool in found]]
        if memory.get("cause") == cause and snapshot.now < memory["until"]:
            shared = [(pool, np.array(gpus, dtype=np.int64)) for pool, gpus in zip(found, memory["gpus"])]
            devices_of = self._devices_of(memory["admitted"])
            return plan_of(snapshot, shared, devices_of, reservations=snapshot.reservations, valid_until=memory["until"], memory=memory)
        return self._decide_anew(snapshot, found, memory)

    def _decide_anew(self, snapshot: Snapshot, found: list[Pool], memory: dict[str, Any]) -> Plan:
        rules, rows = self.settled(), snapshot.jobs.rows.tolist()
        admitted, stored = set(memory.get("admitted", ())), memory.get("plans", {})
        decided: list[Decided] = []
        places = [pool.jobs.tolist() for pool in found]
        for pool, mine in zip(found, places):
            known = [job for job, place in enumerate(mine) if rows[place] in admitted]
            old = restored(stored, [rows[place] for place in mine])
            decided.append(AdmissionControl(replace(pool, curves=pool.curves.powers_of_two()), rules, known, old).decide())
        gone = {mine[job] for mine, one in zip(places, decided) for job in one.refused}
        stays = [place for place in range(len(rows)) if place not in gone]  # a refused job is not there next time
        place_of = {place: number for number, place in enumerate(stays)}
        until = min([one.until for one in decided], default=math.inf)
        remembered: dict[str, Any] = {
            "cause": [
                [rows[place] for place in stays],
                [[pool.kind, pool.capacity, *[place_of[k] for k in mine if k in place_of]] for pool, mine in zip(found, places)],
            ],
            "until": until,
            "gpus": [[gpus for gpus, place in zip(one.gpus.tolist(), mine) if place not in gone] for mine, one in zip(places, decided)],
            "admitted": sorted(
                {rows[mine[job]] for mine, one in zip(places, decided) for job in one.admitted} | admitted.intersection(rows)
            ),
            "plans": {row: plan for mine, one in zip(places, decided) for row, plan in plain(one.plans, [rows[k] for k in mine]).items()},
        }
        refusals = [
            Refusal(int(pool.jobs[job]), _WHY, {"deadline": due} if math.isfinite(due) else {})
            for pool, one in zip(found, decided)
            for job, due in sorted(one.refused.items())
        ]
        shared = [(pool, one.gpus) for pool, one in zip(found, decided)]
        booked = _reservations(snapshot.now, list(zip(found, decided)))
        devices_of = self._devices_of(remembered["admitted"])
        return plan_of(snapshot, shared, devices_of, reservations=booked, refusals=tuple(refusals), valid_until=until, memory=remembered)

    def _devices_of(self, admitted: list[int]) -> DevicesOf | None:
        """Which devices. While a change costs something, a job that was promised a deadline and keeps its size is not moved; nor is any
        other where a move begins a run that may not be stopped for a while."""
        layout = self.settled().layout
        if layout == "engine":
            return None

        def devices_of(pool: Pool, grants: Ints) -> dict[int, tuple[int, ...]]:
            jobs = pool.snapshot.jobs
            promised = np.isfinite(pool.of(jobs.deadline))
            promised[promised] = np.isin(pool.of(jobs.rows)[promised], admitted)
            seconds = self.seconds(pool.snapshot)
            pinned = np.ones(len(pool), dtype=np.bool_) if pool.snapshot.min_run > 0.0 else promised if seconds > 0.0 else None
            return TypeLayout(pool.snapshot, pool.kind, pool.jobs, grants, pinned).devices(layout, repr(seconds))

        return devices_of


def _reservations(now: float, decided: list[tuple[Pool, Decided]]) -> tuple[Reservation, ...]:
    """What is promised from a later moment on."""
    found = []
    for pool, one in decided:
        for job, (times, gpus, end) in one.plans.items():
            ends = [*times[1:].tolist(), end]
            for start, stop, count in zip(times.tolist(), ends, gpus.tolist()):
                if start > now and count:
                    found.append(Reservation(start, stop, count, pool.kind, int(pool.jobs[job])))
    return tuple(found)


@dataclass(frozen=True)
class ElasticFlow(_Deadlines):
    """The fewest GPUs that meet each deadline are reserved; others are refused with an offer; spare GPUs are shared."""

    name = "elasticflow"


@dataclass(frozen=True)
class EarliestDeadlineFirst(_Deadlines):
    """Earliest deadline first, each job as wide as it may be."""

    name = "edf"
    elastic: ClassVar[bool] = False
