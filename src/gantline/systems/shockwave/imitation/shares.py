"""Shockwave's baselines in its simulator: shares of time on one device type, and the turns that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from gantline.core.arrays import Floats
from gantline.models.solvers.feasible_point import feasible_point
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob
from gantline.systems.shockwave.imitation.loop import Chooser, ShockwaveRounds

# The shares of time that Shockwave's baselines give jobs on one device type (section 8 of the paper; Gavel's policies in its fork).
#
# Where an optimum leaves a choice, the original takes what its interior-point solver ends in: near the centre of what
# is left, for OSSP the very point at which that solver stops. Each other rule is a small function of the active jobs
# and needs no solver but bisection.


Shares = dict[int, float]  # by job
_HALVINGS = 60  # of an interval no longer than twice its lower end: more than a float can resolve


@dataclass
class Memory:
    """What a rule remembers from call to call."""

    shares: Shares = field(default_factory=dict)  # its own last answer
    left: dict[int, float] = field(default_factory=dict)  # finish-time fairness: steps left at the last call
    alone: dict[int, float] = field(default_factory=dict)  # and the speed on a part of one's own by then
    credit: dict[int, float] = field(default_factory=dict)  # seconds that a job has had on such a part


Rule = Callable[[Sequence[ShockwaveJob], int, float, Memory], Shares]


def gandiva_fair(jobs: Sequence[ShockwaveJob], gpus: int, clock: float, memory: Memory) -> Shares:
    """Equal shares, whatever the gang."""
    return {job.index: min(1.0, gpus / len(jobs)) for job in jobs}


def max_min(jobs: Sequence[ShockwaveJob], gpus: int, clock: float, memory: Memory) -> Shares:
    """The least share of GPUs is as large as possible."""
    gang = _gangs(jobs)
    if len(jobs) >= gpus:
        return _by_job(jobs, gpus / (len(jobs) * gang))
    return _by_job(jobs, centre(gang, 1.0 / gang, gpus))


def max_sum_throughput(jobs: Sequence[ShockwaveJob], gpus: int, clock: float, memory: Memory) -> Shares:
    """Most steps per second: a knapsack by steps per second and GPU, jobs of one kind alike."""
    worth = [job.throughput / job.gang for job in jobs]
    found, left = np.zeros(len(jobs)), float(gpus)
    for value in sorted(set(worth), reverse=True):
        alike = [k for k, each in enumerate(worth) if each == value]
        found[alike] = min(1.0, left / sum(jobs[k].gang for k in alike))
        left = max(0.0, left - sum(jobs[k].gang for k in alike))
    return _by_job(jobs, found)


def min_total_duration(jobs: Sequence[ShockwaveJob], gpus: int, clock: float, memory: Memory) -> Shares:
    """The shortest horizon in which every job can finish (OSSP), found to a twentieth; then where the original's solver stops in it."""
    gang, work = _gangs(jobs), np.array([job.left / job.throughput for job in jobs])
    low, high = 100.0, 1e6
    while high > 1.05 * low:
        middle = (low + high) / 2.0
        share = work / middle
        if share.max() <= 1.0 and float(gang @ share) <= gpus:
            high = middle
        else:
            low = middle
    return _by_job(jobs, _where_it_stops(jobs, gang, high, gpus))


def _where_it_stops(jobs: Sequence[ShockwaveJob], gang: Floats, horizon: float, gpus: int) -> Floats:
    """Gavel's program without a goal, as ECOS leaves it: short of the centre, which would give 5 % lower JCTs on 220 jobs."""
    speed, left = np.array([job.throughput for job in jobs]), np.array([float(job.left) for job in jobs])
    own = sparse.eye_array(len(jobs))
    limits = sparse.vstack([-own, gang[None, :], own, -sparse.diags_array(speed)])
    bound = np.concatenate([np.zeros(len(jobs)), [float(gpus)], np.ones(len(jobs)), -left / horizon])
    found = feasible_point(sparse.csc_array(limits), bound)
    return centre(gang, left / speed / horizon, gpus) if found is None else found


def finish_time_fairness(jobs: Sequence[ShockwaveJob], gpus: int, clock: float, memory: Memory) -> Shares:
    """The worst ratio of finish time to that on an equal part is as small as possible (what the fork calls Themis)."""
    gang, speed = _gangs(jobs), np.array([job.throughput for job in jobs])
    alone = speed * np.minimum(1.0, gpus / (len(jobs) * gang))
    left = np.array([float(job.left) for job in jobs])
    for k, job in enumerate(jobs):
        if job.index in memory.left:
            had = (memory.left[job.index] - left[k]) / memory.alone[job.index]
            memory.credit[job.index] = memory.credit.get(job.index, 0.0) + had
        memory.left[job.index], memory.alone[job.index] = left[k], alone[k]
    passed = clock - np.array([job.arrival for job in jobs])
    fair = np.array([memory.credit.get(job.index, 0.0) for job in jobs]) + left / alone
    low, high = 0.0, 1.0
    while not _reaches(high, passed, left, speed, fair, gang, gpus):
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if _reaches(middle, passed, left, speed, fair, gang, gpus) else (middle, high)
    return _by_job(jobs, centre(gang, np.minimum(left / (speed * (high * fair - passed)), 1.0), gpus))


def _reaches(ratio: float, passed: Floats, left: Floats, speed: Floats, fair: Floats, gang: Floats, gpus: int) -> bool:
    """Whether every job can have that ratio or a better one."""
    time = ratio * fair - passed
    if (time <= 0.0).any():
        return False
    share = left / (speed * time)
    return bool(share.max() <= 1.0 and gang @ share <= gpus)


def allox(jobs: Sequence[ShockwaveJob], gpus: int, clock: float, memory: Memory) -> Shares:
    """The least sum of completion times by matching; a fifth of the waiting jobs may take part, the oldest first."""
    held = {index for index, share in memory.shares.items() if share == 1.0}
    shares = {job.index: memory.shares.get(job.index, 0.0) for job in jobs}
    free = gpus - sum(job.index in held for job in jobs)
    others = sorted((job for job in jobs if job.index not in held), key=lambda job: -(clock - job.arrival))
    others = others[: max(int(0.2 * len(others)), free)]
    if not others or free <= 0:
        return shares
    position = np.repeat(np.arange(1, len(others) + 1), free)
    time = np.array([job.left / job.throughput for job in others])
    cost = time[:, None] * position[None, :] + np.array([clock - job.arrival for job in others])[:, None]
    rows, columns = linear_sum_assignment(cost)
    last: dict[int, tuple[int, int]] = {}  # per GPU: the largest position, and which job has it
    for row, column in zip(rows.tolist(), columns.tolist()):
        last[column % free] = max(last.get(column % free, (0, 0)), (int(position[column]), row))
    for _, row in last.values():
        shares[others[row].index] = 1.0 / others[row].gang
    return shares


def centre(gang: Floats, least: Floats, gpus: float) -> Floats:
    """The analytic centre of the shares between `least` and 1 that need no more than the GPUs there are.

    It maximises the sum of log(x - least) + log(1 - x) + log(x) and of log(GPUs left over). For a price of a GPU each share follows by
    bisection, and the price is right when it is one over what is left.
    """
    fixed = least >= 1.0 - 1e-12
    room = gpus - float(gang[fixed].sum())
    found = np.where(fixed, 1.0, least)
    size, bound = gang[~fixed], least[~fixed]
    if not len(size) or room - float(size @ bound) <= 1e-9 * gpus:
        return found
    low, high = 0.0, 1.0
    while high * (room - float(size @ _share(size, bound, high))) < 1.0:
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        price = (low + high) / 2.0
        enough = price * (room - float(size @ _share(size, bound, price))) >= 1.0
        low, high = (low, price) if enough else (price, high)
    found[~fixed] = _share(size, bound, high)
    return found


def _share(gang: Floats, least: Floats, price: float) -> Floats:
    """The share at which another bit of a GPU is worth its price."""
    low, high, worth = least.copy(), np.ones(len(least)), price * gang
    with np.errstate(divide="ignore"):
        for _ in range(_HALVINGS):
            x = (low + high) / 2.0
            gains = 1.0 / (x - least) - 1.0 / (1.0 - x) + 1.0 / x > worth
            low, high = np.where(gains, x, low), np.where(gains, high, x)
    return (low + high) / 2.0


def _gangs(jobs: Sequence[ShockwaveJob]) -> Floats:
    return np.array([float(job.gang) for job in jobs])


def _by_job(jobs: Sequence[ShockwaveJob], shares: Floats) -> Shares:
    return {job.index: float(share) for job, share in zip(jobs, shares)}


RULES: dict[str, Rule] = {
    "gandiva_fair": gandiva_fair,
    "max_min_fairness": max_min,
    "max_sum_throughput_perf": max_sum_throughput,
    "min_total_duration": min_total_duration,
    "finish_time_fairness": finish_time_fairness,
    "allox": allox,
}


# Shares of time become turns: Gavel's mechanism with a reset at most every 1,000 s (Gavel, OSDI 2020, section 5).

_BETWEEN_RESETS = 1000.0


@dataclass
class ShareTurns(Chooser):
    """What each job has received since the last reset, and which is next."""

    rule: Rule
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        self.shares: dict[int, float] = {}
        self._time: dict[int, float] = {}  # seconds run since the last reset, from half a round on
        self._deficit: dict[int, float] = {}
        self._total = 0.0
        self._reset_at = 0.0

    def round_ended(self, rounds: ShockwaveRounds, closed: Sequence[ShockwaveJob]) -> None:
        """Credit the round that has just ended."""
        for job in closed:
            self._time[job.index] = self._time.get(job.index, rounds.length / 2) + job.last_turn
            self._total += job.last_turn

    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        jobs = rounds.active
        for job in jobs:
            self._time.setdefault(job.index, rounds.length / 2)
            self._deficit.setdefault(job.index, 0.0)
        if rounds.changed and (self._reset_at == 0.0 or rounds.clock - self._reset_at >= _BETWEEN_RESETS):
            self._reset(rounds)
        order = sorted(jobs, key=lambda job: (-self._priority(job), -self._deficit[job.index], -self.shares.get(job.index, 0.0)))
        chosen, left = [], rounds.gpus
        for job in order:
            if job.gang <= left:
                left -= job.gang
                if job.index in self.shares:  # a job without a share may take a place, but is not run
                    chosen.append(job)
        return chosen

    def _priority(self, job: ShockwaveJob) -> float:
        share = self.shares.get(job.index, 0.0)
        return share / (self._time[job.index] / self._total) if share else 0.0

    def _reset(self, rounds: ShockwaveRounds) -> None:
        half, passed = rounds.length / 2, rounds.clock - self._reset_at
        for job in rounds.active:
            self._deficit[job.index] += self.shares.get(job.index, 0.0) * passed - (self._time[job.index] - half)
            self._time[job.index] = half
        self._total = half * len(rounds.active)
        self._reset_at = rounds.clock
        self.shares = self.memory.shares = self.rule(rounds.active, rounds.gpus, rounds.clock, self.memory)
        rounds.changed = False
