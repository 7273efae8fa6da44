"""The affinity graph: which jobs meet on which links, how well they fit there, and one shift per job that suits all links.

Rajasekaran et al., "CASSINI" (NSDI 2024): jobs and the links that at least two of them cross are the two sides of a graph. The best shifts
on a link hold relative to one another, so a walk from link to link gives every job one shift, which is unique where the graph has no cycle.
Links that the same jobs cross are one vertex here, the narrowest of them: two jobs over the same two uplinks are no cycle.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gantline.models.links.link_flows import Flow
from gantline.models.links.shared_links import Circle, Fit, best_shifts, circle_of, fluid_times, own_phase, score_of


class Company(NamedTuple):
    """Jobs that meet, directly or through others: their shifts, the scores of their links, and whether the shifts are unique."""

    shifts: tuple[float, ...]
    scores: tuple[float, ...]  # with the shifts, per link that is shared
    before: tuple[float, ...]  # without
    cyclic: bool
    uncommon: int  # links whose jobs have no common period in the limit


@lru_cache(maxsize=1 << 12)
def _fit(circles: tuple[Circle, ...], capacity: float) -> Fit:
    return best_shifts(circles, capacity)


@lru_cache(maxsize=1 << 12)
def judge(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> Company:
    """How well the jobs of one company fit on their links; `Flow.shift` is where each would begin by itself."""
    narrowest: dict[tuple[int, ...], int] = {}
    for link, most in enumerate(capacity):
        users = tuple(at for at, flow in enumerate(flows) if link in flow.links)
        if len(users) > 1 and most < capacity[narrowest.get(users, link)] * (1.0 + (users not in narrowest)):
            narrowest[users] = link
    fits, before = {}, []
    for users, link in narrowest.items():
        circles = tuple(circle_of(flows[at], capacity[link]) for at in users)
        before.append(score_of(circles, capacity[link]))
        fits[users] = _fit(tuple(one._replace(shift=0.0) for one in circles), capacity[link])
    cyclic = sum(map(len, narrowest)) > len(flows) + len(narrowest) - 1  # more edges than a tree has; a job alone is a tree
    shifts = _walk(flows, fits)
    return Company(shifts, tuple(fit.score for fit in fits.values()), tuple(before), cyclic, sum(not fit.common for fit in fits.values()))


def _walk(flows: tuple[Flow, ...], fits: dict[tuple[int, ...], Fit]) -> tuple[float, ...]:
    """Breadth first from the first job, at zero: over a link from job j to job k, t_k = t_j - t_j on the link + t_k on the link."""
    found: dict[int, float] = {}
    for first in sorted({at for users in fits for at in users}):
        if first in found:
            continue
        found[first], queue = 0.0, deque([first])
        while queue:
            here = queue.popleft()
            for users, fit in fits.items():
                if here not in users:
                    continue
                mine = fit.shifts[users.index(here)]
                for there, theirs in zip(users, fit.shifts):
                    if there not in found:
                        found[there] = (found[here] - mine + theirs) % (flows[there].compute + flows[there].network)
                        queue.append(there)
    return tuple(found.get(at, 0.0) for at in range(len(flows)))


def pays(flows: tuple[Flow, ...], capacity: tuple[float, ...], shifts: tuple[float, ...]) -> bool:
    """Whether the mean iteration, links divided fairly, is no longer with these shifts than without."""
    shifted = tuple(flow._replace(shift=shift) for flow, shift in zip(flows, shifts))
    return bool(np.mean(fluid_times(shifted, capacity)) <= np.mean(fluid_times(flows, capacity)) * (1.0 + 1e-9))


def flow_of(row: int, iteration: float, network: float, bandwidth: float, links: tuple[int, ...]) -> Flow:
    """A job where it begins by itself."""
    return Flow(iteration - network, network, bandwidth, links, own_phase(row) * iteration)
