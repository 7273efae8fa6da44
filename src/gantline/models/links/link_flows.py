"""How long iterations take jobs that compute and communicate in turn, when links are shared fairly: exact, event by event. Compiled.

Each job computes for a while and then sends a volume over its links, at most at its own bandwidth. What is sent at one time shares the
links by max-min fairness (progressive filling). The flow between two events is constant, so nothing is stepped or sampled; the mean is
taken over one round where the state recurs, which is exact, and else over the last part of many iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

MOST_EVENTS = 1000
"""Events per job after which the mean so far is taken: jobs whose periods have no short common multiple."""
_EPS = 1e-9


class Flow(NamedTuple):
    """One job: seconds without traffic, seconds of traffic at its own bandwidth, GB/s then, its links, and when its iteration begins."""

    compute: float
    network: float
    bandwidth: float
    links: tuple[int, ...]
    shift: float = 0.0


def iteration_times(flows: Sequence[Flow], capacity: Sequence[float]) -> Floats:
    """Seconds of an iteration of each job, in the long run; those that cross no link take as long as alone."""
    count = len(flows)
    if not count:
        return np.zeros(0)
    room = np.asarray(capacity, dtype=np.float64)
    first = np.zeros(count + 1, dtype=np.int64)
    first[1:] = np.cumsum([len(flow.links) for flow in flows])
    crossed = np.array([link for flow in flows for link in flow.links], dtype=np.int64)
    asked = [own_bandwidth(flow, room) for flow in flows]
    volume = [flow.network * most for flow, most in zip(flows, asked)]
    jobs = np.array([[flow.compute for flow in flows], volume, asked, [flow.shift for flow in flows]])
    found = np.empty(count)
    _run(jobs, first, crossed, room, np.empty((11, count)), np.empty((2, max(len(room), 1))), found, MOST_EVENTS * count)
    return found


def own_bandwidth(flow: Flow, capacity: Floats) -> float:
    """GB/s of a job that has its links to itself: its own, or as much as the narrowest of them has where it asks for no more than that."""
    return flow.bandwidth if np.isfinite(flow.bandwidth) else min((float(capacity[link]) for link in flow.links), default=1.0)


@kernel
def _run(jobs: Floats, first: Ints, crossed: Ints, capacity: Floats, w: Floats, links: Floats, found: Floats, most: int) -> None:
    """Event after event until the state when job 0 ends an iteration is one that was seen before (Brent), or for so many events.

    Rows of `w`: what is left of the phase, whether it sends, its rate, iterations done; what is left, sends and is done in the state to
    come back to; scratch of the shares; when the first iteration that is counted began, its number, when the last one ended.
    """
    count = jobs.shape[1]
    left, sends, rate, done = w[0], w[1], w[2], w[3]
    for j in range(count):
        left[j], sends[j], done[j], w[4, j], w[5, j], w[6, j] = jobs[0, j] + jobs[3, j], 0.0, 0.0, -1.0, 0.0, 0.0
        w[8, j], w[9, j], w[10, j] = 0.0, -1.0, 0.0
    now, mark, events, rounds, power = 0.0, 0.0, 0, 0, 1
    while events < most:
        _share(jobs, first, crossed, capacity, sends, rate, links, w[7])
        step = np.inf
        for j in range(count):
            step = min(step, left[j] / rate[j] if sends[j] == 1.0 else left[j])
        now += step
        round_over = False
        for j in range(count):
            left[j] -= step * (rate[j] if sends[j] == 1.0 else 1.0)
            if left[j] > _EPS * jobs[1 if sends[j] == 1.0 else 0, j]:
                continue
            events += 1
            if sends[j] == 0.0:
                sends[j], left[j] = 1.0, jobs[1, j]
            else:
                sends[j], left[j] = 0.0, jobs[0, j]
                done[j] += 1.0
                round_over = round_over or j == 0
                w[10, j] = now
                if w[9, j] < 0.0 and events >= most // 4:
                    w[8, j], w[9, j] = now, done[j]
        if not round_over:
            continue
        if _recurs(jobs, w):
            for j in range(count):
                found[j] = (now - mark) / (done[j] - w[6, j])
            return
        rounds += 1
        if rounds == power:  # come back to this state from now on
            power, rounds, mark = 2 * power, 0, now
            for j in range(count):
                w[4, j], w[5, j], w[6, j] = left[j], sends[j], done[j]
    for j in range(count):  # whole iterations, after the start has died away
        counted = done[j] - w[9, j] if w[9, j] >= 0.0 else 0.0
        found[j] = (w[10, j] - w[8, j]) / counted if counted > 0.0 else now / max(done[j], 1.0)


@kernel
def _recurs(jobs: Floats, w: Floats) -> bool:
    """Whether this is the remembered state, and every job has ended an iteration since."""
    same = True
    for j in range(jobs.shape[1]):
        near = abs(w[0, j] - w[4, j]) <= 1e-7 * jobs[1 if w[1, j] == 1.0 else 0, j]
        same = same and near and w[1, j] == w[5, j] and w[3, j] > w[6, j]
    return same


@kernel
def _share(jobs: Floats, first: Ints, crossed: Ints, capacity: Floats, sends: Floats, rate: Floats, links: Floats, settled: Floats) -> None:
    """Max-min fair rates of those that send: all rise together until a link is full or a job has its bandwidth."""
    count, room, users = jobs.shape[1], links[0], links[1]
    open_jobs = 0
    for link in range(capacity.shape[0]):
        room[link], users[link] = capacity[link], 0.0
    for j in range(count):
        rate[j], settled[j] = 0.0, 1.0
        if sends[j] == 1.0:
            settled[j] = 0.0
            open_jobs += 1
            for k in range(first[j], first[j + 1]):
                users[crossed[k]] += 1.0
    while open_jobs > 0:
        rise = np.inf
        for link in range(capacity.shape[0]):
            if users[link] > 0.0:
                rise = min(rise, room[link] / users[link])
        for j in range(count):
            if settled[j] == 0.0:
                rise = min(rise, jobs[2, j] - rate[j])
        for j in range(count):
            if settled[j] == 0.0:
                rate[j] += rise
                for k in range(first[j], first[j + 1]):
                    room[crossed[k]] -= rise
        for j in range(count):
            if settled[j] == 0.0:
                full = rate[j] >= jobs[2, j] * (1.0 - _EPS)
                for k in range(first[j], first[j + 1]):
                    full = full or room[crossed[k]] <= capacity[crossed[k]] * _EPS
                if full:
                    settled[j] = 2.0
        for j in range(count):
            if settled[j] == 2.0:
                settled[j] = 1.0
                open_jobs -= 1
                for k in range(first[j], first[j + 1]):
                    users[crossed[k]] -= 1.0
