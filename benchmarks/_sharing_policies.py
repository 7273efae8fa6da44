"""Whole runs of policies that share, as small as they can be: groups of four, packed pairs, guests beside hosts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from gantline import Assignments, Mode, Plan, Policy, Snapshot, simulate
from gantline.models.model import Gangs, PerformanceModel

_MANY = 1_000_000
_SPEEDS = np.array([0.9**mates for mates in range(64)])


@dataclass(frozen=True)
class Fours(Policy):
    """Muri-like: jobs in the order of arrival, four of a size on the same devices, each a stage later than the one before."""

    def decide(self, snapshot: Snapshot) -> Plan:
        order = np.argsort(snapshot.jobs.gpus, kind="stable")[::-1]
        gpus, at = snapshot.jobs.gpus[order], np.arange(len(order))
        place = at - np.maximum.accumulate(np.where(np.r_[True, gpus[1:] != gpus[:-1]], at, 0))  # among those of its size
        leads = np.flatnonzero(place % 4 == 0)
        fits = np.searchsorted(np.cumsum(gpus[leads]), int(snapshot.cluster.capacity.sum()), side="right")
        last = int(leads[fits]) if fits < len(leads) else len(order)
        group, mode = gpus[:last] * 10_000 + place[:last] // 4, np.full(last, int(Mode.INTERLEAVE))
        return Plan.assign(Assignments(order[:last], group=group, mode=mode, offset=(place[:last] % 4).astype(float)))


@dataclass(frozen=True)
class Alone(Policy):
    """For comparison: every job that fits gets devices of its own, in the order of arrival, until it ends."""

    def decide(self, snapshot: Snapshot) -> Plan:
        gpus, runs = snapshot.jobs.gpus, snapshot.jobs.running
        waits = np.flatnonzero(~runs)
        starts = waits[np.cumsum(gpus[waits]) <= int(snapshot.cluster.capacity.sum() - gpus[runs].sum())]
        return Plan.assign(Assignments(np.sort(np.concatenate([np.flatnonzero(runs), starts]))))


@dataclass(frozen=True)
class Pairs(Policy):
    """Lucid-like: a job that runs keeps its partner; those that wait are paired, two of a size. Its memory: rows, and the pair of each."""

    def decide(self, snapshot: Snapshot) -> Plan:
        rows, gpus = snapshot.jobs.rows, snapshot.jobs.gpus
        known, number = np.zeros((2, 0), dtype=np.int64) if snapshot.memory is None else snapshot.memory
        pair_of = np.full(max(rows[-1], known[-1]) + 1 if len(known) else rows[-1] + 1, -1)
        pair_of[known] = number
        pair = pair_of[rows]
        kept = np.flatnonzero(pair >= 0)
        pairs, members = int(number.max(initial=-1)) + 1, np.bincount(pair[kept])
        size = np.zeros(len(members), dtype=np.int64)
        size[pair[kept]] = gpus[kept]
        ones, waits = np.flatnonzero(members == 1)[::-1], np.flatnonzero(pair < 0)
        free, single = int(snapshot.cluster.capacity.sum() - size.sum()), dict(zip(size[ones].tolist(), ones.tolist()))
        for k, width in zip(waits.tolist(), gpus[waits].tolist()):
            if width in single:
                pair[k] = single.pop(width)
            elif width <= free:
                free -= width
                pair[k] = single[width] = pairs
                pairs += 1
        chosen = np.flatnonzero(pair >= 0)
        table = Assignments(chosen, group=pair[chosen], mode=np.full(len(chosen), int(Mode.SPACE)))
        return Plan.assign(table, memory=np.array([rows[chosen], pair[chosen]]))


@dataclass(frozen=True)
class Guests(Policy):
    """AntMan-like: two jobs in three get devices of their own; the others lie on devices of those, wherever fewest guests are."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, total = snapshot.jobs, int(snapshot.cluster.capacity.sum())
        gpus, is_guest, runs = jobs.gpus, jobs.rows % 3 == 2, jobs.running
        running = np.flatnonzero(runs)
        where = dict(zip(running.tolist(), map(jobs.devices, running.tolist())))
        device, by_guest = np.array(list(chain.from_iterable(where.values())), dtype=np.int64), np.repeat(is_guest[running], gpus[running])
        crowd, taken = np.bincount(device[by_guest], minlength=total), np.zeros(total, dtype=np.bool_)
        taken[device[~by_guest]] = True
        free, quiet = total - int(taken.sum()), int((crowd < 2).sum())
        for k in np.flatnonzero(~runs).tolist():
            if not is_guest[k] and gpus[k] <= free:
                chosen = np.flatnonzero(~taken)[: gpus[k]]
                taken[chosen] = True
                free -= len(chosen)
            elif is_guest[k] and gpus[k] <= quiet:
                chosen = np.sort(np.argsort(crowd, kind="stable")[: gpus[k]])
                crowd[chosen] += 1
                quiet = int((crowd < 2).sum())
            else:
                continue
            where[k] = tuple(chosen.tolist())
        jobs_chosen = np.array(sorted(where), dtype=np.int64)
        fraction, mode = np.where(is_guest[jobs_chosen], 0.25, 1.0), np.full(len(where), int(Mode.SPACE))
        return Plan.assign(Assignments(jobs_chosen, mode=mode, fraction=fraction, devices=[where[k] for k in jobs_chosen.tolist()]))


@dataclass(frozen=True)
class ByCompany(PerformanceModel):
    """Each mate costs a tenth."""

    about_gangs = False

    def rates(self, gangs: Gangs) -> tuple[np.ndarray, np.ndarray]:
        beside = np.unique(gangs.sharers.crowded * _MANY + gangs.sharers.row) // _MANY  # a mate on several devices is one
        mates = np.bincount(beside, minlength=len(gangs))
        return np.where(gangs.special, _SPEEDS[mates], gangs.divided), np.full(len(gangs), np.inf)


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


@dataclass(frozen=True)
class Timed(Policy):
    """A policy, and the CPU seconds that its own decisions took."""

    inner: Policy = field(default_factory=Policy)
    seconds: list[float] = field(default_factory=list)

    def decide(self, snapshot: Snapshot) -> Plan:
        began = time.process_time()
        plan = self.inner.decide(snapshot)
        self.seconds.append(time.process_time() - began)
        return plan


def run_all(sizes: list[int]) -> None:
    """Each policy once per number of jobs, without and with a model of speeds: CPU seconds in all, and of these the policy's own."""
    for name, policy, cluster, load in (
        ("fours", Fours(), "16x8", 3.0),
        ("pairs", Pairs(), "32x8", 1.5),
        ("guests", Guests(), "64x8", 0.9),
        ("plain gangs", Alone(), "32x8", 0.9),
    ):
        gpus = int(cluster.split("x")[0]) * 8
        for told, model in (("", None), (", speeds by a model", ByCompany())):
            simulate(jobs(50, load, gpus), cluster, policy, performance=model)  # compile
            for count in sizes:
                timed, began = Timed(policy), time.process_time()
                run = simulate(jobs(count, load, gpus), cluster, timed, performance=model)
                seconds, what = time.process_time() - began, f"{run.summary['decisions']} decisions, log {run.summary['log_hash'][:8]}"
                print(f"{name}, {count} jobs{told}: {seconds:.2f} CPU s, {sum(timed.seconds):.2f} of them the policy, {what}", flush=True)
