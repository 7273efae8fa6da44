"""AlloX as one pure function: waiting jobs, machines and users in, starts out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.systems.allox.policies.columns import (
    TICKS,
    MachineColumns,
    SlotPrices,
    State,
    UserScores,
    WaitingJobs,
    pack,
    recall,
    remember,
    to_ticks,
    unpack,
)
from gantline.systems.allox.policies.event import decide_columns
from gantline.systems.allox.policies.fill import fits


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

    @staticmethod
    def single(owner: Ints, arrival: Floats, time: Floats, gain: Floats | None = None, need: Floats | None = None) -> Waiting:
        """Jobs that take one machine each, with no further resources unless given."""
        jobs, types = time.shape
        return Waiting(
            np.arange(jobs),
            owner,
            arrival,
            time,
            np.zeros((jobs, types)) if gain is None else gain,
            np.zeros((jobs, types, 0)) if need is None else need,
            np.ones((jobs, types), dtype=np.int64),
        )


@dataclass(frozen=True)
class Machines:
    """Single devices (or CPU nodes): their type, when each is expected to be free, and whether it is free now."""

    kind: Ints
    release: Floats
    idle: npt.NDArray[np.bool_]
    free: Floats  # of the further resources, in all


@dataclass(frozen=True)
class Decision:
    """The jobs that start and their types, and the users' scores afterwards."""

    jobs: Ints
    kinds: Ints
    score: Floats
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
) -> tuple[Decision, State]:
    """Start what AlloX would start now.

    Gangs (``width`` above one), which the original cannot run, are matched as one job of their whole area (time x
    width), start when they head an idle machine's list and enough machines of its type are idle, and reserve machines
    once they are older than ``age`` (a number, or one for each job). The state makes the next call quick and never changes the answer.
    """
    times, release = to_ticks(waiting.time, machines.release)
    prices = SlotPrices(*recall(unpack(state, waiting.time.shape[1]), waiting.name))
    started, scored, matchings = decide_columns(
        round(now * TICKS),
        WaitingJobs(waiting.owner, times, np.ascontiguousarray(waiting.width.T), waiting.need, waiting.gain),
        UserScores(score, weight),
        alpha,
        np.flatnonzero(now - waiting.arrival >= age),
        MachineColumns(machines.kind, release, machines.idle, machines.free),
        prices,
    )
    jobs = np.flatnonzero(started >= 0)
    return Decision(jobs, started[jobs], scored, matchings), pack(remember(waiting.name, prices))


def nothing_hangs(waiting: Waiting, machines: Machines, decision: Decision) -> bool:
    """Whether the decision stands until something arrives or ends.

    Idle machines grow dearer against busy ones as time passes, so a job that prefers to wait goes on to prefer it. Only a job
    that heads an idle machine's list and yet cannot start, a gang or one that lacks memory, may later be put elsewhere and
    make room for another.
    """
    return stands(
        waiting.time,
        waiting.width,
        waiting.need,
        machines.kind,
        machines.idle,
        machines.free,
        decision.jobs,
        decision.kinds,
    )


@compiled
def stands(time: Floats, width: Ints, need: Floats, kind: Ints, idle: npt.NDArray[np.bool_], free: Floats, jobs: Ints, kinds: Ints) -> bool:
    """The same over columns: whether no job that is left could use idle machines and yet is too wide or lacks something."""
    left, rest, started = np.zeros(time.shape[1], np.int64), np.zeros(free.size, np.float64), np.zeros(time.shape[0], np.bool_)
    for r in range(free.size):
        rest[r] = free[r]
    for m in range(kind.size):
        left[kind[m]] += idle[m]
    for i in range(jobs.size):
        left[kinds[i]] -= width[jobs[i], kinds[i]]
        for r in range(free.size):
            rest[r] -= need[jobs[i], kinds[i], r]
        started[jobs[i]] = True
    for k in range(left.size):
        if left[k] <= 0:
            continue
        for j in range(started.size):
            if not started[j] and np.isfinite(time[j, k]) and (width[j, k] > 1 or not fits(need[j, k], rest)):
                return False
    return True
