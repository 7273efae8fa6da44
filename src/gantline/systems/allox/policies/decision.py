"""One event of AlloX: which jobs start where, when something arrived or ended (AlloX, EuroSys 2020, Algorithm 1).

1. Jobs that have waited too long go first, in order of arrival: each takes the machines on which it would end first, and if these are
   not idle yet they are kept for it. AlloX' matching lets short jobs overtake a long one for ever; an aged job is delayed by running
   jobs and by older ones only.
2. The users with the lowest scores are let in, and their jobs are matched to machines. A user's score is the progress its running jobs
   make, in shares of the cluster (section 4.3): alpha towards 0 is max-min fairness, alpha = 1 least mean completion time.
3. A job that heads the list of an idle machine starts. When all users compete, all heads start; else the one of the
   user with the lowest score, since its start changes whose turn it is.
4. If nothing could start, alpha is doubled for the rest of the event, until all users compete.
5. A job that heads the list of an idle machine and yet cannot start, a gang or one that lacks memory, is left out of this
   event and the others are matched once more: nothing stays idle that someone's matching would use.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.host_resources import SLACK
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.systems.allox.policies.baselines import fits
from gantline.systems.allox.policies.matching import FORBIDDEN, TICKS, State, match_ticks, recall, remember, to_ticks

_WAITS, _OUT = -1, -2  # of a job that has not started, or takes no part in what is left of the event


@dataclass(frozen=True)
class Waiting:
    """The waiting jobs, in order of arrival; types that a job cannot use have an infinite time."""

    name: Ints  # a number that stays with the job
    owner: Ints
    arrival: Floats
    time: Floats  # per type, estimated seconds
    gain: Floats  # per type, what it adds to its owner's score
    need: Floats  # per type and further resource, such as memory
    width: Ints  # per type, how many machines it takes at once


@dataclass(frozen=True)
class Machines:
    """Single devices (or CPU nodes): their type, when each is expected to be free, and whether it is free now."""

    kind: Ints
    release: Floats
    idle: Bools
    free: Floats  # of the further resources, in all


@dataclass(frozen=True)
class Decision:
    """The jobs that start and their types, and how many matchings that took."""

    jobs: Ints
    kinds: Ints
    matchings: int


def decide(
    waiting: Waiting,
    machines: Machines,
    score: Floats,
    weight: Floats,
    *,
    now: float,
    alpha: float = 1.0,
    age: float | Floats = inf,
    state: State | None = None,
) -> tuple[Decision, State | None]:
    """Start what AlloX would start now.

    Gangs (``width`` above one), which the original cannot run, are matched as one job of their whole area (time x
    width), start when they head an idle machine's list and enough machines of its type are idle, and reserve machines
    once they are older than ``age`` (a number, or one for each job). The state makes the next call quick and never changes the answer.
    """
    times, release = to_ticks(waiting.time, machines.release)
    tick, idle = round(now * TICKS), machines.idle.copy()
    # all ways of some jobs were found to have no node; a matching with one of these has no answer
    started = np.where((times != FORBIDDEN).any(axis=0), _WAITS, _OUT)
    release = np.where(idle | (release < tick), tick, release)
    jobs = times, waiting.width, waiting.owner, waiting.gain, waiting.need
    event = _Event(*jobs, score.copy(), weight, machines.kind, release, idle, machines.free.copy(), started)
    _serve_aged(event, np.flatnonzero(now - waiting.arrival >= age))
    price, depth, place = recall(state, waiting.name, len(times))
    matchings = _match_users(event, tick, alpha, price, depth, place)
    starts = np.flatnonzero(started >= 0)
    return Decision(starts, started[starts], matchings), remember(waiting.name, price, depth, place) if matchings else state


def read_weights(texts: tuple[str, ...]) -> dict[str, float]:
    """How much users count, from ``alice=2``."""
    weights: dict[str, float] = {}
    for text in texts:
        name, sign, number = text.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            weights[name] = -1.0
        if not sign or not name or not 0.0 < weights[name] < inf:
            raise UsageError(f"'{text}' is not a weight", where="weights", fix="write user=NUMBER with a number above 0, such as alice=2")
    return weights


@compiled
def let_in(score: Floats, weight: Floats, active: Bools, alpha: float) -> Bools:
    """The active users with the lowest score per weight, ``ceil(alpha x active)`` of them; draws go by number."""
    users = np.flatnonzero(active)
    poorest_first = users[np.argsort(score[users] / weight[users], kind="mergesort")]
    chosen = np.zeros(len(active), np.bool_)
    chosen[poorest_first[: ceil(alpha * len(users) - 1e-12)]] = True
    return chosen


def next_ageing(arrival: Floats, now: float, age: float) -> float:
    """When the next waiting job will have waited that long."""
    if age == inf:
        return inf
    young = arrival[now - arrival < age]
    return float(young.min()) + age if len(young) else inf


def nothing_hangs(waiting: Waiting, machines: Machines, decision: Decision) -> bool:
    """Whether the decision stands until something arrives or ends.

    Idle machines grow dearer against busy ones as time passes, so a job that prefers to wait goes on to prefer it. Only a job
    that heads an idle machine's list and yet cannot start, a gang or one that lacks memory, may later be put elsewhere and
    make room for another.
    """
    left = np.bincount(machines.kind[machines.idle], minlength=waiting.time.shape[1])
    np.subtract.at(left, decision.kinds, waiting.width[decision.jobs, decision.kinds])
    free = machines.free - waiting.need[decision.jobs, decision.kinds].sum(axis=0)
    hangs = np.isfinite(waiting.time) & (left > 0) & ((waiting.width > 1) | ~fits(waiting.need, free))
    hangs[decision.jobs] = False
    return not hangs.any()


class _Event(NamedTuple):
    """Jobs, users and machines; scores and machines change while jobs start."""

    times: Ints  # per type and job, in ticks
    width: Ints
    owner: Ints
    gain: Floats
    need: Floats
    score: Floats
    weight: Floats
    kind: Ints
    release: Ints
    idle: Bools
    free: Floats
    started: Ints  # the type on which each job starts, or a code below zero


def _serve_aged(event: _Event, aged: Ints) -> None:
    """Start or reserve for the aged jobs, in order; what is reserved is neither idle nor free before the aged job would end on it."""
    for job in aged.tolist():
        event.started[job] = _OUT
        best_end, best_kind, best = inf, -1, aged[:0]
        for kind in np.flatnonzero(event.times[:, job] != FORBIDDEN).tolist():
            mine, width = np.flatnonzero(event.kind == kind), event.width[job, kind]
            if len(mine) < width:
                continue
            first = mine[np.lexsort((~event.idle[mine], event.release[mine]))[:width]]
            end = event.release[first[-1]] + event.times[kind, job]
            if end < best_end:
                best_end, best_kind, best = end, kind, first
        if best_kind < 0:
            continue
        need = event.need[job, best_kind]
        if fits(need, event.free) and event.idle[best].all():
            event.started[job] = best_kind
            event.score[event.owner[job]] += event.gain[job, best_kind]
        event.release[best], event.idle[best] = best_end, False
        np.subtract(event.free, need, out=event.free)


@compiled
def _match_users(event: _Event, now: int, alpha: float, price: Ints, depth: Ints, place: Ints) -> int:
    """Match and start until nothing more can; returns how many matchings that took."""
    active = np.zeros(event.score.size, np.bool_)
    for job in range(event.started.size):
        if event.started[job] == _WAITS:
            active[event.owner[job]] = True
    failed, matchings = np.zeros(0, np.bool_), 0
    while event.idle.any():
        chosen = let_in(event.score, event.weight, active, alpha)
        everyone = bool((chosen == active).all())
        if failed.size == 0 or (chosen != failed).any():
            rows = np.array(
                [job for job in range(event.started.size) if event.started[job] == _WAITS and chosen[event.owner[job]]], np.int64
            )
            failed = chosen
            if rows.size > 0:
                matchings += 1
                if _start_heads(event, now, rows, everyone, price, depth, place):
                    failed = chosen[:0]
                    continue
        if everyone:
            break
        alpha *= 2.0
    return matchings


@compiled
def _start_heads(event: _Event, now: int, rows: Ints, everyone: bool, price: Ints, depth: Ints, place: Ints) -> bool:
    """Match some jobs and start heads of idle machines: all, or the one of the user with the lowest score.

    Whether the others should be matched again, because a turn has passed or because heads that could not start are left out.
    """
    ticks, mine, blocked = np.full((event.times.shape[0], rows.size), FORBIDDEN), place[rows], np.zeros(rows.size, np.bool_)
    for i in range(rows.size):
        for kind in range(ticks.shape[0]):
            if event.times[kind, rows[i]] != FORBIDDEN:
                ticks[kind, i] = event.times[kind, rows[i]] * event.width[rows[i], kind]
    machine, begin, repairs = match_ticks(ticks, event.kind, event.release, event.idle, price, depth, mine)
    if repairs < 0:
        return False
    place[rows] = mine
    heads = event.idle[machine] & (begin == event.release[machine])
    while True:
        best, lowest = -1, inf
        for i in range(rows.size):
            job, kind = rows[i], event.kind[machine[i]]
            if heads[i] and event.started[job] == _WAITS and event.idle[machine[i]]:
                blocked[i] = _lacks(event, job, kind)
                score = event.score[event.owner[job]] / event.weight[event.owner[job]]
                if not blocked[i] and (best < 0 or score < lowest):
                    best, lowest = i, score
        if best < 0:
            break
        _start(event, now, rows[best], machine[best])
        if not everyone:
            return True
    if everyone:
        event.started[rows[blocked]] = _OUT
    return bool(everyone and blocked.any())


@kernel
def _lacks(event: _Event, job: int, kind: int) -> bool:
    """Whether too few machines are idle for a gang, or too little is free of something else."""
    idle = 0
    for machine in range(event.idle.size):
        idle += event.idle[machine] and event.kind[machine] == kind
    for resource in range(event.free.size):
        if event.need[job, kind, resource] > event.free[resource] + SLACK:
            return True
    return bool(event.width[job, kind] > 1 and idle < event.width[job, kind])


@kernel
def _start(event: _Event, now: int, job: int, machine: int) -> None:
    """Take a machine, and for a gang further idle machines of its type, the last ones first."""
    kind = event.kind[machine]
    event.started[job] = kind
    event.score[event.owner[job]] += event.gain[job, kind]
    for resource in range(event.free.size):
        event.free[resource] -= event.need[job, kind, resource]
    event.idle[machine], event.release[machine] = False, now + event.times[kind, job]
    wanted, other = event.width[job, kind] - 1, event.idle.size - 1
    while wanted > 0 and other >= 0:
        if event.idle[other] and event.kind[other] == kind:
            event.idle[other], event.release[other] = False, event.release[machine]
            wanted -= 1
        other -= 1


# --- machines that a gang waits for ---------------------------------------------------------------------------------------
# AlloX knows jobs of one machine only. A gang that heads a list and finds too few machines idle would keep those it finds from
# others behind it. Here the others may use them as long as no waiting gang could start later for it (by the estimates, as EASY
# backfilling does), and as long as the job itself could not end sooner on another kind of machine.


def behind_gangs(waiting: Waiting, machines: Machines, decision: Decision, now: float) -> tuple[Ints, Ints]:
    """Jobs and kinds of machine that start besides what was decided."""
    left = np.ones(len(waiting.owner), dtype=bool)
    left[decision.jobs] = False
    gangs = left & (waiting.width.max(axis=1, initial=1) > 1)
    if not gangs.any():
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    kinds = waiting.time.shape[1]
    ends = [_ends(waiting, machines, decision, kind, now) for kind in range(kinds)]
    free = machines.free - waiting.need[decision.jobs, decision.kinds].sum(axis=0)
    jobs: list[int] = []
    chosen: list[int] = []
    for kind in range(kinds):
        idle = int((ends[kind] <= now).sum())
        blocked = np.flatnonzero(gangs & left & np.isfinite(waiting.time[:, kind]) & (waiting.width[:, kind] > idle))
        if not idle or not len(blocked):
            continue
        begins = np.array([_begin(ends[kind], int(waiting.width[gang, kind])) for gang in blocked])
        spare = np.searchsorted(ends[kind], begins, side="right") - waiting.width[blocked, kind]
        for job in np.lexsort((np.arange(len(left)), waiting.time[:, kind])):
            width, done = int(waiting.width[job, kind]), now + waiting.time[job, kind]
            if not left[job] or width > idle or not np.isfinite(done) or not fits(waiting.need[job, kind], free):
                continue
            in_the_way = begins < done
            if (spare[in_the_way] < width).any() or done > _soonest(waiting, ends, job, kind, now):
                continue
            spare[in_the_way] -= width
            left[job], idle, free = False, idle - width, free - waiting.need[job, kind]
            ends[kind] = np.sort(np.concatenate((ends[kind][width:], np.full(width, done))))
            jobs.append(int(job))
            chosen.append(kind)
    return np.array(jobs, dtype=np.int64), np.array(chosen, dtype=np.int64)


def _ends(waiting: Waiting, machines: Machines, decision: Decision, kind: int, now: float) -> Floats:
    """When each machine of a kind is free, in order, with what was decided under way."""
    own = machines.kind == kind
    ends = np.sort(np.where(machines.idle[own], now, np.maximum(machines.release[own], now + 1e-6)))
    for job in decision.jobs[decision.kinds == kind]:
        width = int(waiting.width[job, kind])
        ends = np.sort(np.concatenate((ends[width:], np.full(width, now + waiting.time[job, kind]))))
    return ends


def _begin(ends: Floats, width: int) -> float:
    """When so many machines are free at once; infinity: there are not so many."""
    return float(ends[width - 1]) if width <= len(ends) else np.inf


def _soonest(waiting: Waiting, ends: list[Floats], job: int, kind: int, now: float) -> float:
    """When the job could end on another kind of machine, if it were the next there."""
    found = [
        max(now, _begin(ends[other], int(waiting.width[job, other]))) + waiting.time[job, other]
        for other in range(len(ends))
        if other != kind and np.isfinite(waiting.time[job, other])
    ]
    return min(found, default=np.inf)
