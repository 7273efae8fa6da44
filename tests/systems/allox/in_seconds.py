"""The matching as people state it: times in seconds, and the sum of completion times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.systems.allox.policies.decision import Waiting
from gantline.systems.allox.policies.matching import TICKS, State, to_ticks
from gantline.systems.allox.policies.matching import match as match_ticks


@dataclass(frozen=True)
class Schedule:
    """Per job its machine, its position from the end and its start."""

    machine: Ints
    position: Ints
    begin: Floats
    first: Bools
    total: float  # sum of completion times
    repairs: int

    def starting(self, idle: Bools) -> Ints:
        """The jobs that head the list of an idle machine, in order of their machines."""
        jobs = np.flatnonzero(self.first & idle[self.machine])
        return jobs[np.argsort(self.machine[jobs], kind="stable")]


def match(
    times: Floats, machine_type: Ints, release: Floats, *, jobs: Ints | None = None, state: State | None = None
) -> tuple[Schedule, State]:
    """Match jobs to machines; ``times[j, t]`` is how long job j takes on type t."""
    ticks, until = to_ticks(times, release)
    names = np.arange(len(times)) if jobs is None else jobs
    answer = match_ticks(ticks, machine_type, until, np.ones(len(release), dtype=bool), names, state)
    assert answer is not None
    found, after = answer
    begin = found.begin / TICKS
    total = float((begin + times[np.arange(len(times)), machine_type[found.machine]]).sum())
    return Schedule(found.machine, found.position, begin, found.first, total, found.repairs), after


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
