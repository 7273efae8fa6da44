"""Policies that name who holds what, for stories and rules: neighbours that share, jobs that are sent from node to node, jobs that grow
and shrink by the clock or as they ask, jobs that take turns, jobs that are tried first, and jobs
whose terms change while they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline import Assignment, Mode, Plan, Policy, Snapshot


def watched(kind: Any, look: Callable[[Snapshot], object]) -> Policy:
    """A policy of this class whose snapshots are looked at before it decides."""

    class Watched(kind):
        def decide(self, snapshot: Snapshot) -> Plan:
            look(snapshot)
            return super().decide(snapshot)

    return Watched()


@dataclass(frozen=True)
class Pairs(Policy):
    """Neighbours of equal size share their devices: grants that are more than gangs keep the rules as well."""

    def decide(self, snapshot: Snapshot) -> Plan:
        free = snapshot.cluster.capacity.tolist()
        wanted: list[Assignment] = []
        alone = -1
        for job, gpus in enumerate(snapshot.jobs.gpus.tolist()):
            kind = snapshot.jobs.options(job)[0].type
            if alone >= 0 and gpus == snapshot.jobs.gpus[alone] and kind == snapshot.jobs.options(alone)[0].type:
                wanted[-1] = Assignment(alone, group=alone, mode=Mode.SPACE, fraction=0.5)
                wanted.append(Assignment(job, group=alone, mode=Mode.SPACE, fraction=0.5))
                alone = -1
            elif gpus <= free[kind]:
                wanted.append(Assignment(job))
                free[kind] -= gpus
                alone = job
        return Plan.assign(wanted)


@dataclass(frozen=True)
class Wanderers(Policy):
    """Every few minutes each gang that fits on one node is sent to another one; the others wait until everybody is gone."""

    stay: float = 200.0

    def decide(self, snapshot: Snapshot) -> Plan:
        cluster = snapshot.cluster
        free = np.where(cluster.node_up, cluster.node_gpus, 0)
        first = int(snapshot.now // self.stay)
        wanted: list[Assignment] = []
        for job, gpus in enumerate(snapshot.jobs.gpus.tolist()):
            for step in range(cluster.nodes):
                node = (first + job + step) % cluster.nodes
                if free[node] >= gpus:
                    free[node] -= gpus
                    wanted.append(Assignment(job, nodes=(node,)))
                    break
        if not wanted and len(snapshot.jobs):
            wanted = [Assignment(0)]
        return Plan.assign(wanted)


@dataclass(frozen=True)
class Breathers(Policy):
    """In the order of arrival, everybody gets a part of what it asked for, and every hundred seconds another part."""

    pace: float = 100.0

    def decide(self, snapshot: Snapshot) -> Plan:
        left, wanted = int(snapshot.cluster.capacity.sum()), []
        beat = int(snapshot.now / self.pace + 1e-9)  # 3 * 0.7 // 0.7 is 2
        for job, gpus in enumerate(snapshot.jobs.gpus.tolist()):
            size = 1 + (beat + job) % gpus
            if size <= left:
                wanted.append(Assignment(job, gpus=size))
                left -= size
        return Plan.assign(wanted, valid_until=self.pace * (beat + 1))


@dataclass(frozen=True)
class AsAsked(Policy):
    """In the order of arrival, everybody gets what it asks for now: who requests another size gets that."""

    def decide(self, snapshot: Snapshot) -> Plan:
        left, wanted = int(snapshot.cluster.capacity.sum()), []
        for job, gpus in enumerate(snapshot.jobs.gpus.tolist()):
            if gpus <= left:
                wanted.append(Assignment(job, gpus=gpus))
                left -= gpus
        return Plan.assign(wanted)


@dataclass(frozen=True)
class Rota(Policy):
    """All jobs are one time-shared group; every hundred seconds others of it have their turn."""

    pace: float = 100.0

    def decide(self, snapshot: Snapshot) -> Plan:
        left, wanted, beat = int(snapshot.cluster.capacity.sum()), [], int(snapshot.now // self.pace)
        jobs = snapshot.jobs.gpus.tolist()
        size = min(left, sum(jobs))
        for step in range(len(jobs)):
            job = (beat + step) % len(jobs)
            if jobs[job] <= left:
                wanted.append(Assignment(job, group=0, mode=Mode.TIME, size=size))
                left -= jobs[job]
        return Plan.assign(sorted(wanted, key=lambda item: item.job), valid_until=self.pace * (beat + 1))


@dataclass(frozen=True)
class PairedRota(Policy):
    """Two neighbours share the first devices that can be used; every hundred seconds it is the turn of the next two."""

    pace: float = 100.0

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, beat = snapshot.jobs.gpus.tolist(), int(snapshot.now // self.pace)
        usable = np.flatnonzero(snapshot.cluster.device_open).tolist()
        first = beat * 2 % (len(jobs) + len(jobs) % 2) if jobs else 0
        pair = [job for job in range(len(jobs)) if first <= job < first + 2 and jobs[job] <= len(usable)]
        wanted = [Assignment(job, devices=tuple(usable[: jobs[job]]), mode=Mode.SPACE, fraction=0.5, turns=0) for job in pair]
        return Plan.assign(wanted, valid_until=self.pace * (beat + 1))


@dataclass(frozen=True)
class Tries(Policy):
    """In the order of arrival; a job that has run for less than `trial` seconds is on trial, and begins again afterwards."""

    trial: float = 100.0  # longer than a start takes, with messages that are late or lost

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, wanted, free = snapshot.jobs, [], snapshot.cluster.capacity.tolist()
        for job, gpus in enumerate(jobs.gpus.tolist()):
            kind = jobs.options(job)[0].type
            if gpus <= free[kind]:
                free[kind] -= gpus
                fresh = jobs.attained[job] < self.trial
                wanted.append(Assignment(job, purpose="trial", limit=self.trial) if fresh else Assignment(job))
        return Plan.assign(wanted)


@dataclass(frozen=True)
class Shifts(Policy):
    """Every job where it is; from `later` on with other CPUs, a cap on its device memory and a shift."""

    later: float = 1.0

    def decide(self, snapshot: Snapshot) -> Plan:
        after = bool(len(snapshot.jobs)) and snapshot.now >= snapshot.jobs.arrival.min() + self.later
        more = {"cpus": 0.5, "memory_cap": 24.0, "offset": 0.25} if after else {}
        until = None if after or not len(snapshot.jobs) else float(snapshot.jobs.arrival.min()) + self.later
        return Plan.assign([Assignment(job, **more) for job in range(len(snapshot.jobs))], valid_until=until)
