"""Whole runs of policies that share, as small as they can be: groups of four, packed pairs, guests beside hosts."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline import Assignments, Mode, Plan, Policy, Snapshot, simulate
from gantline.performance.model import Gang, PerformanceModel


@dataclass(frozen=True)
class Fours(Policy):
    """Muri-like: jobs in the order of arrival, four of a size on the same devices, each a stage later than the one before."""

    def decide(self, snapshot: Snapshot) -> Plan:
        gpus = snapshot.jobs.gpus
        order = np.argsort(gpus, kind="stable")[::-1]
        place = np.zeros(len(gpus), dtype=np.int64)
        for size in np.unique(gpus):
            mine = order[gpus[order] == size]
            place[mine] = np.arange(len(mine))
        group = gpus * 10_000 + place // 4
        order = np.lexsort((place, -gpus))
        lead, first = np.unique(group[order], return_index=True)
        width = gpus[order][first]
        by_turn = np.argsort(first)
        fits = lead[by_turn][np.cumsum(width[by_turn]) <= int(snapshot.cluster.capacity.sum())]
        chosen = order[np.isin(group[order], fits)]
        mode = np.full(len(chosen), int(Mode.INTERLEAVE))
        return Plan.assign(Assignments(chosen, group=group[chosen], mode=mode, offset=(place[chosen] % 4).astype(float)))


@dataclass(frozen=True)
class Pairs(Policy):
    """Lucid-like: a job that runs keeps its partner; those that wait are paired, two of a size."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = snapshot.jobs
        gpus, rows = jobs.gpus.tolist(), jobs.rows.tolist()
        at = {row: k for k, row in enumerate(rows)}
        free, group = int(snapshot.cluster.capacity.sum()), np.full(len(gpus), -1)
        kept: list[int] = snapshot.memory or []
        pairs = [(a, b) for a, b in kept if a in at or b in at]
        single: dict[int, int] = {}
        for number, pair in enumerate(pairs):
            here = [at[row] for row in pair if row in at]
            group[here] = number
            free -= gpus[here[0]]
            if len(here) == 1:
                single.setdefault(gpus[here[0]], number)
        for k in np.flatnonzero(group < 0).tolist():
            size = gpus[k]
            if size in single:
                number = single.pop(size)
                pairs[number] = (next(row for row in pairs[number] if row in at), rows[k])
            elif size <= free:
                free -= size
                single[size] = number = len(pairs)
                pairs.append((rows[k], -1))
            else:
                continue
            group[k] = number
        chosen = np.flatnonzero(group >= 0)
        table = Assignments(chosen, group=group[chosen], mode=np.full(len(chosen), int(Mode.SPACE)))
        return Plan.assign(table, memory=[list(pair) for pair in pairs])


@dataclass(frozen=True)
class Guests(Policy):
    """AntMan-like: two jobs in three get devices of their own; the others lie on devices of those, wherever fewest guests are."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, total = snapshot.jobs, int(snapshot.cluster.capacity.sum())
        gpus, rows = jobs.gpus.tolist(), jobs.rows.tolist()
        running = jobs.running
        hosts, taken, where = [], np.zeros(total, dtype=bool), {}
        crowd = np.zeros(total, dtype=np.int64)
        for k in np.flatnonzero(running).tolist():
            where[k] = jobs.devices(k)
            if rows[k] % 3 == 2:
                crowd[list(where[k])] += 1
            else:
                taken[list(where[k])] = True
        for k in np.flatnonzero(~running).tolist():
            if rows[k] % 3 != 2:
                free = np.flatnonzero(~taken)
                if gpus[k] <= len(free):
                    where[k] = tuple(free[: gpus[k]].tolist())
                    taken[free[: gpus[k]]] = True
                    hosts.append(k)
            else:
                quiet = np.argsort(crowd, kind="stable")[: gpus[k]]
                if crowd[quiet].max() < 2:
                    where[k] = tuple(sorted(quiet.tolist()))
                    crowd[quiet] += 1
        chosen = sorted(where)
        fraction = np.array([0.25 if rows[k] % 3 == 2 else 1.0 for k in chosen])
        mode = np.full(len(chosen), int(Mode.SPACE))
        return Plan.assign(Assignments(chosen, mode=mode, fraction=fraction, devices=[where[k] for k in chosen]))


@dataclass(frozen=True)
class ByCompany(PerformanceModel):
    """Each mate costs a tenth."""

    about_gangs = False

    def granted(self, gang: Gang) -> float:
        return 0.9 ** len(gang.mates)


def jobs(count: int, load: float, gpus: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(7)
    size = rng.choice([1, 2, 4, 8], count, p=[0.4, 0.3, 0.2, 0.1])
    length = rng.uniform(500.0, 4000.0, count)
    span = float((size * length).sum()) / (load * gpus)
    arrival = np.sort(rng.uniform(0.0, span, count))
    return [
        {"job": f"j{k}", "arrival": float(at), "gpus": int(g), "duration": float(s)}
        for k, (at, g, s) in enumerate(zip(arrival, size, length))
    ]


def run_all(count: int) -> None:
    """Each policy once, policy and model included."""
    for name, policy, cluster, load in (
        ("fours", Fours(), "16x8", 3.0),
        ("pairs", Pairs(), "32x8", 1.5),
        ("guests", Guests(), "64x8", 0.9),
    ):
        gpus = int(cluster.split("x")[0]) * 8
        for told, model in (("", None), (", speeds by a model", ByCompany())):
            simulate(jobs(50, load, gpus), cluster, policy, performance=model)  # compile
            began = time.process_time()
            run = simulate(jobs(count, load, gpus), cluster, policy, performance=model)
            seconds = time.process_time() - began
            print(
                f"{name}, {count} jobs{told}: {seconds:.2f} CPU s, {run.summary['decisions']} decisions, log {run.summary['log_hash'][:8]}"
            )
