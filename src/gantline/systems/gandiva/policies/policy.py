"""`gandiva` and `gandiva.introspective`: time slicing; homes, packing, migration and growth (OSDI 2018, sections 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.memory import Memory
from gantline.core.plan import Mode, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.systems.gandiva.policies.homes import Homes, Packing, ServerRoom, against_fragments, for_locality

# Gandiva (Xiao et al., OSDI 2018), its time slicing: when not all jobs fit, they take turns.


@dataclass(frozen=True)
class Gandiva(Policy):
    """Round robin of whole gangs: the one that has waited longest since its last turn comes first, and any that fits runs."""

    name = "gandiva"
    paper = "Xiao et al.: Gandiva: Introspective Cluster Scheduling for Deep Learning (OSDI 2018), section 3"

    slice: float = parameter(
        60.0, "seconds of a turn; in between no gang is preempted (regime 'elasticflow': its own)", above=0.0, finite=True, unit="seconds"
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        jobs, now = snapshot.jobs, snapshot.now
        seen = memory.get("seen", {})  # when a job last had its turn
        since = np.array([seen.get(str(row), came) for row, came in zip(jobs.rows.tolist(), jobs.arrival.tolist())])
        since = np.where(jobs.running, now, since)
        over = now >= memory.get("until", -math.inf) - 1e-9
        until = now + self.slice if over else memory["until"]
        kept = {
            str(row): float(at)
            for row, at, runs in zip(jobs.rows.tolist(), since.tolist(), jobs.running.tolist())
            if runs or str(row) in seen
        }
        return Plan.rank(since, preempt=over, valid_until=until, memory={"until": until, "seen": kept})


# `gandiva.introspective`: homes by affinity, turns per server, packing, migration and growth (Gandiva, OSDI 2018, sections 3 and 4).


@dataclass(frozen=True)
class Introspective(Policy):
    """A job starts at once, on servers with jobs of its size; servers with too many jobs run them in turns.

    In turns of so many seconds it is seen whether two jobs do more together on the same GPUs than in turns, whether a job can leave the
    servers that it is spread over, and whether jobs that may grow find idle GPUs on their server.
    """

    name = "gandiva.introspective"
    names_devices = True
    paper = "Xiao et al.: Gandiva: Introspective Cluster Scheduling for Deep Learning (OSDI 2018), sections 3 and 4"
    ties = "equal waits: the earlier arrival first, then the order of the trace"

    slice: float = parameter(60.0, "seconds of a turn, and of a trial of two jobs together", above=0.0, finite=True, unit="seconds")
    packing: bool = parameter(True, "try two jobs on the same GPUs where jobs take turns")
    migration: bool = parameter(True, "bring jobs together that are spread, and empty servers that are little used")
    growth: bool = parameter(True, "jobs that may have more GPUs take idle ones of their server")
    idle: float = parameter(120.0, "seconds that GPUs are idle before a job grows", low=0.0, finite=True, unit="seconds")

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Memory] = snapshot.memory or {}
        jobs, now = snapshot.jobs, snapshot.now
        rows = jobs.rows.tolist()
        over = now >= memory.get("until", -math.inf) - 1e-9
        until = now + self.slice if over else memory["until"]
        servers = ServerRoom.of(snapshot)
        homes = _homes(servers, memory, rows)
        if over and self.migration and not for_locality(homes):
            against_fragments(homes)
        packing = _packing(snapshot, homes, memory, self.slice if over else math.inf)
        waited = _waited(snapshot, over)
        mates = _mates(packing, rows)
        order = sorted(homes.of_job, key=lambda job: (max(waited[job], waited[mates[job]]) if job in mates else waited[job], job))
        running, left = servers.turns(homes, order, mates)
        if self.packing and over and left:
            self._pack(snapshot, packing, homes, left, running)
            running, left = servers.turns(homes, order, _mates(packing, rows))
        may_grow = self.growth and bool((jobs.max_gpus > jobs.gpus).any())
        idle = servers.idle_since(memory.get("idle", {}), now) if may_grow else {}
        grown = servers.grow(snapshot, homes, running, left, {server for server, at in idle.items() if now >= at + self.idle - 1e-9})
        kept = {
            "until": until,
            "homes": {
                str(rows[job]): [[servers.nodes[server], gpus_by_server[server]] for server in gpus_by_server]
                for job, gpus_by_server in homes.of_job.items()
            },
            "idle": {str(servers.nodes[server]): at for server, at in idle.items()},
            **packing.memory(),
        }
        until = min([until, *(at + self.idle for at in idle.values() if at + self.idle > now)])
        return Plan.assign(servers.assignments(homes, running, grown), valid_until=until, memory=kept)

    def _pack(self, snapshot: Snapshot, packing: Packing, homes: Homes, left: list[int], running: Iterable[int]) -> None:
        """On each server where jobs wait for their turn, try one pair of equal size: the least used first, as far as that is known."""
        used = snapshot.jobs.metric("gpu_util")
        rows = snapshot.jobs.rows.tolist()

        def least_used(some: Iterable[int]) -> list[int]:
            return sorted(some, key=lambda job: (used[job] if used[job] == used[job] else math.inf, job))

        for server in range(len(homes.gpus)):
            for size in sorted(homes.affinity(server)):
                alike = {job for job, gpus_by_server in homes.of_job.items() if gpus_by_server == {server: size}}
                waiting, hosts = least_used(alike.intersection(left)), least_used(alike.intersection(running))
                packing.try_one([rows[job] for job in waiting], [rows[job] for job in hosts], snapshot.now)


def _homes(servers: ServerRoom, memory: dict[str, Memory], rows: list[int]) -> Homes:
    """Where jobs lived at the last plan, as far as those servers are there; the others move in, in order of arrival."""
    homes, known = Homes(servers.gpus, servers.may_use), memory.get("homes", {})
    server_of = {node: server for server, node in enumerate(servers.nodes)}
    for job, row in enumerate(rows):
        there = known.get(str(row))
        stays = there is not None and all(node in server_of and servers.gpus[server_of[node]] >= count for node, count in there)
        if stays and sum(count for _, count in there) == servers.size[job]:
            homes.move_in(job, servers.size[job], {server_of[node]: count for node, count in there})
    for job in range(len(rows)):
        if job not in homes.of_job and (gpus_by_server := homes.choose(servers.size[job], servers.may_use(job))):
            homes.move_in(job, servers.size[job], gpus_by_server)
    return homes


def _packing(snapshot: Snapshot, homes: Homes, memory: dict[str, Memory], trial: float) -> Packing:
    """The pairs that stand: those that pay, or are still being tried, of jobs that live together."""
    jobs = snapshot.jobs
    rows = jobs.rows.tolist()
    packing = Packing.remembered(memory, set(rows))
    rates = {row: rate for row, rate, works in zip(rows, jobs.rate.tolist(), jobs.progressing.tolist()) if works}
    place, beside = _places(rows), packing.mates()
    shares = {row for row in beside if (grant := jobs.grant(place[row])) is not None and grant.assignment.mode == Mode.SPACE}
    packing.alone |= {row: rate for row, rate in rates.items() if row not in shares and rate > 0}
    packing.judge(rates, snapshot.now, trial)
    packing.since = {pair: at for pair, at in packing.since.items() if _stands(homes, place, pair)}
    return packing


def _mates(packing: Packing, rows: list[int]) -> dict[int, int]:
    place = _places(rows)
    return {place[row]: place[mate] for row, mate in packing.mates().items()}


def _places(rows: list[int]) -> dict[int, int]:
    """Row -> its position."""
    return {row: job for job, row in enumerate(rows)}


def _stands(homes: Homes, place: dict[int, int], pair: tuple[int, int]) -> bool:
    """Whether the two live together where jobs take turns; elsewhere each has GPUs of its own."""
    first, second = (homes.of_job.get(place[row]) for row in pair)
    return first is not None and first == second and any(homes.room(server) < 0 for server in first)


def _waited(snapshot: Snapshot, over: bool) -> list[float]:
    """Since when each job has had no turn. While a turn lasts, those that run come first."""
    jobs, now = snapshot.jobs, snapshot.now
    running = now if over else -math.inf
    return [running if runs else now - waits for runs, waits in zip(jobs.running.tolist(), jobs.waiting.tolist())]
