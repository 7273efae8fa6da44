"""AlloX as one pure function: waiting jobs, machines and users in, starts out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from gantline.core.errors import UsageError
from gantline.policies.allox.ageing import serve_aged
from gantline.policies.allox.event import start_matched
from gantline.policies.allox.matching import TICKS, State, recall, remember, to_ticks
from gantline.policies.allox.users import check_alpha
from gantline.policies.allox.ways import Floats, Ints


@dataclass(frozen=True)
class Waiting:
    """The waiting jobs, in order of arrival; types that a job cannot use have an infinite time."""

    name: Ints  # a number that stays with the job
    owner: Ints
    arrival: Floats
    time: Floats  # per type, estimated seconds
    gain: Floats  # per type, what it adds to its owner's score (see `users.progress_gains`)
    need: Floats  # per type and further resource, such as memory
    width: Ints  # per type, how many machines it takes at once

    @staticmethod
    def single(
        owner: Ints, arrival: Floats, time: Floats, gain: Floats | None = None, need: Floats | None = None
    ) -> Waiting:
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
    age: float = inf,
    state: State | None = None,
) -> tuple[Decision, State]:
    """Start what AlloX would start now.

    Gangs (``width`` above one), which the original cannot run, are matched as one job of their whole area (time x
    width), start when they head an idle machine's list and enough machines of its type are idle, and reserve machines
    once they are older than ``age``. The state makes the next call quick and never changes the answer.
    """
    check_alpha(alpha)
    if age < 0:
        raise UsageError(f"age is {age:g}", where="age", fix="give the seconds after which a waiting job goes first")
    types = waiting.time.shape[1]
    times = to_ticks(waiting.time, machines.release)
    clock = round(now * TICKS)
    release = np.maximum(np.rint(machines.release * TICKS).astype(np.int64), clock)
    release[machines.idle] = clock
    idle, free, scored = machines.idle.copy(), machines.free.copy(), score.copy()
    width = np.ascontiguousarray(waiting.width.T)
    started = np.full(len(waiting.name), -1, dtype=np.int64)
    if np.isfinite(age):
        aged = np.flatnonzero(now - waiting.arrival >= age)
        serve_aged(aged, times, width, waiting.need, machines.kind, release, idle, free, started)
        served = aged[started[aged] >= 0]
        np.add.at(scored, waiting.owner[served], waiting.gain[served, started[served]])
        started[aged[started[aged] < 0]] = -2  # they wait for what is reserved
    price, depth, place = recall(state, waiting.name, types)
    matchings = start_matched(
        clock,
        waiting.owner,
        times,
        width,
        waiting.need,
        waiting.gain,
        scored,
        weight,
        alpha,
        machines.kind,
        release,
        idle,
        free,
        started,
        price,
        depth,
        place,
    )
    jobs = np.flatnonzero(started >= 0)
    left = place >= 0
    return (
        Decision(jobs, started[jobs], scored, int(matchings)),
        remember(waiting.name[left], price, depth, place[left]),
    )
