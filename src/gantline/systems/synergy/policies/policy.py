"""`synergy`: an order of jobs, and CPUs and memory divided by what each gains from them (OSDI 2022, sections 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.plan import Assignment, Plan
from gantline.core.snapshot import Snapshot
from gantline.systems.synergy.policies import mechanisms
from gantline.systems.synergy.policies.fleet import Fleet, fleets_of
from gantline.systems.synergy.policies.needs import Need, Vector
from gantline.systems.synergy.policies.settings import SynergySettings


@dataclass(frozen=True)
class Synergy(SynergySettings):
    """Jobs in an order; each gets GPUs, and CPUs and memory by what it gains from them.

    Jobs that run stay where they are while that gives them what the mechanism means them to have; CPUs and memory change in place.
    """

    names_devices: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    usual_round: ClassVar[float] = 300.0
    ties: ClassVar[str] = "equal keys: the earlier arrival first, then the order of the trace"

    def order_moves(self) -> bool:
        return self.order in ("las", "ftf")

    def decide(self, snapshot: Snapshot) -> Plan:
        given: list[Assignment] = []
        for fleet in fleets_of(snapshot, consolidate=self.place == "consolidated"):
            order = [fleet.jobs[at] for at in np.argsort(self._key(snapshot, fleet), kind="stable").tolist()]
            self._divide([job for job in order if job in fleet.locked] + [job for job in order if job not in fleet.locked], fleet)
            given += fleet.assignments()
        return Plan.assign(given, valid_until=None if self.order_moves() else math.inf)

    def _key(self, snapshot: Snapshot, fleet: Fleet) -> Floats:
        """One number per job of the fleet, smaller first; jobs are in order of arrival."""
        jobs, at = snapshot.jobs, np.array([job.row for job in fleet.jobs], dtype=np.int64)
        if self.order == "fifo":
            return np.asarray(jobs.arrival[at])
        if self.order == "las":
            return np.asarray(jobs.attained_gpu[at])
        gain = np.array([1.0 if self.mechanism == "fair" else job.gain for job in fleet.jobs])
        left: Floats = jobs.remaining[at] / gain
        if self.order == "srtf":
            return left
        if self.order == "ftf":  # the job that its waiting has hurt most goes first
            return -(snapshot.now - jobs.arrival[at] + left) / np.maximum(jobs.estimate[at], 1e-9)
        shares = np.array([[job.gpus, job.demand.cpus * job.gpus, job.demand.memory * job.gpus] for job in fleet.jobs])
        shares = shares.reshape(-1, 3) / np.maximum(fleet.total, 1e-9)
        return np.asarray(shares.max(axis=1) if self.order == "drf" else shares.sum(axis=1) * left)

    def _divide(self, order: Sequence[Need], fleet: Fleet) -> None:
        servers = fleet.servers
        if self.mechanism == "fair":
            mechanisms.proportional(order, servers)
        elif self.mechanism == "greedy":
            mechanisms.greedy(order, servers)
        else:
            if self.mechanism == "opt":
                order = mechanisms.runnable(order, servers.free)
                cells = mechanisms.chosen_cells(order, sum(servers.cpus), sum(servers.memory)) or {}
                for job, cell in cells.items():
                    job.demand, job.gain = Vector(cell.cpus, cell.memory), cell.speed
            mechanisms.tune(order, servers)
