"""Links that gangs share, as performance models: `shared-links`, and `link-circles`, its fast stand-in.

What a job sends, and when, are metrics of its trace (`gantline.core.topology`); which links it crosses follows from
where it is placed. `shared-links` divides them by max-min fairness at every instant. Jobs that a plan shifts may slip
from their offsets, each at a pace of its own (`drift`); the metric `phase_error` says by which part of an iteration.
Another offset, a whole iteration more for instance, aligns a job anew. `link-circles` looks at each link alone, and a
gang is as slow as on the worst of its links: exact for two jobs at the full rate of one link; `docs/links.md` has its
error elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.topology import Traffic
from gantline.models.links.link_flows import Flow, iteration_times
from gantline.models.model import Gangs, Observed, PerformanceModel

PHASE_ERROR = "phase_error"
_STEP = 0.01  # of an iteration: how far the fastest may slip before speeds are computed anew
_HOUR = 3600.0


@lru_cache(maxsize=1 << 14)
def fluid_times(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> Floats:
    """Seconds of an iteration of each; asked about once."""
    return iteration_times(flows, capacity)


@dataclass(frozen=True)
class SharedLinks(PerformanceModel):
    """Gangs are as much slower as their iterations are longer, with the links that they share divided fairly at every instant."""

    about_everyone: ClassVar[bool] = True
    drift: float = 0.0
    """Iterations per hour by which a shifted job slips from its offset at most, ahead or behind."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.drift < np.inf:
            raise UsageError(f"a drift of {self.drift:g}", where="shared-links", fix="iterations per hour, zero or more")

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        everyone = gangs.everyone
        if not self.drift:
            return rates_by(gangs, slowdowns(everyone, fluid_times))
        slipped = np.round(self._slipped(everyone) / _STEP) * _STEP
        rate, until = rates_by(gangs, slowdowns(everyone, fluid_times, slipped))
        return rate, np.full_like(until, gangs.now + _STEP / self.drift * _HOUR) if (everyone.group >= 0).any() else until

    def observe(self, gangs: Gangs) -> Observed | None:
        """How far each shifted job is off, and since when it has had its offset."""
        if not self.drift:
            return None
        aligned = self._aligned(gangs)
        error = np.where(gangs.group >= 0, np.abs(self._slipped(gangs)), np.nan)
        return Observed({PHASE_ERROR: error}, {str(row): list(since) for row, since in aligned.items()})

    def _aligned(self, gangs: Gangs) -> dict[int, tuple[float, float]]:
        """Offset of each shifted job, and since when it has that."""
        known, found = gangs.learned or {}, {}
        for row, offset, group in zip(gangs.rows.tolist(), gangs.offset.tolist(), gangs.group.tolist()):
            if group >= 0:
                before = known.get(str(row))
                found[row] = (offset, before[1] if before is not None and before[0] == offset else gangs.now)
        return found

    def _slipped(self, gangs: Gangs) -> Floats:
        """The part of an iteration by which each has slipped since then."""
        aligned = self._aligned(gangs)
        hours = np.array([(gangs.now - aligned[row][1]) / _HOUR if row in aligned else 0.0 for row in gangs.rows.tolist()])
        pace = np.array([2.0 * own_phase(row) - 1.0 for row in gangs.rows.tolist()])
        return np.asarray(hours * self.drift * pace)


def rates_by(gangs: Gangs, slow: Floats) -> tuple[Floats, Floats]:
    """The speeds of these gangs, where each of all gangs that run is so much slower."""
    by_row = dict(zip(gangs.everyone.rows.tolist(), slow.tolist()))
    return gangs.divided / np.array([by_row.get(row, 1.0) for row in gangs.rows.tolist()]), np.full(len(gangs), np.inf)


# Gangs that share links as performance models see them: which meet, directly or through others, and in which phase
# each is.
#
# A gang that a plan shifts (a group and an offset) begins its iterations at its offset, as CASSINI's agents see to.
# Any other begins where it happens to: at a part of its iteration that only its row decides, so that equal runs are
# equal.

_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over a circle

Times = Callable[[tuple[Flow, ...], tuple[float, ...]], Floats]


def own_phase(row: int) -> float:
    """The part of an iteration at which a gang that nothing shifts begins."""
    return row * _GOLDEN % 1.0


def link_groups(links: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Gangs that meet on links, directly or through others, each once and in order; those without a link are left out."""
    parent: dict[int, int] = {}

    def root(link: int) -> int:
        while parent.setdefault(link, link) != link:
            link = parent[link]
        return link

    for crossed in links:
        for link in crossed[1:]:
            parent[root(link)] = root(crossed[0])
    found: dict[int, list[int]] = {}
    for at, crossed in enumerate(links):
        if crossed:
            found.setdefault(root(crossed[0]), []).append(at)
    return list(found.values())


def renumbered(flows: Sequence[Flow], capacity: Sequence[float]) -> tuple[tuple[Flow, ...], tuple[float, ...]]:
    """The same flows over no links but theirs, numbered from zero: equal groups anywhere are one question."""
    used = sorted({link for flow in flows for link in flow.links})
    number = {link: k for k, link in enumerate(used)}
    return tuple(flow._replace(links=tuple(number[link] for link in flow.links)) for flow in flows), tuple(capacity[link] for link in used)


def slowdowns(gangs: Gangs, times: Times, slipped: Floats | None = None) -> Floats:
    """How many times longer an iteration takes each gang than alone, by how long it takes the groups they are in.

    `slipped`: the part of an iteration by which each has slipped from its offset.
    """
    traffic = Traffic.read(gangs._metric, gangs.rows)
    crossed = [links if known else () for links, known in zip(gangs.links, traffic.known.tolist())]
    capacity, slow = [link.bandwidth for link in gangs.cluster.links], np.ones(len(gangs))
    for link_group in link_groups(crossed):
        flows = [_flow(gangs, traffic, at, crossed[at], 0.0 if slipped is None else float(slipped[at])) for at in link_group]
        slow[link_group] = times(*renumbered(flows, capacity)) / traffic.iteration[link_group]
    return slow


def _flow(gangs: Gangs, traffic: Traffic, at: int, links: tuple[int, ...], slipped: float) -> Flow:
    iteration, network = float(traffic.iteration[at]), float(traffic.network[at])
    own = own_phase(int(gangs.rows[at])) * iteration
    shift = float(gangs.offset[at]) + slipped * iteration if gangs.group[at] >= 0 else own
    return Flow(iteration - network, network, float(traffic.bandwidth[at]), links, shift % iteration)


# Jobs on a link as circles: how well their communication fits together, and the shifts with which it fits best.
#
# Rajasekaran et al., "CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters" (NSDI 2024): time is rolled
# around a circle whose perimeter is the least common multiple of the jobs' iteration times; the score of a link is
# one less the part of the circle by which demand exceeds the link. Demand is constant between the instants at which a
# job begins or ends to communicate, so the excess is integrated exactly. Angles of five degrees only say which shifts
# are tried.

QUANTUM = 0.005  # seconds to which iteration times are rounded before a common multiple is sought
LONGEST = 400  # iterations of the shortest job in a circle at most
ANGLES = 72  # of five degrees
_ROUNDS = 3  # of coordinate descent
_SAME = 1e-9


class Circle(NamedTuple):
    """One job on a link: seconds of an iteration, seconds of communication at its end, GB/s meanwhile, seconds by which it is shifted."""

    iteration: float
    network: float
    bandwidth: float
    shift: float = 0.0


class Fit(NamedTuple):
    """Shifts of jobs on one link, seconds, the first of them at zero; the score with them; whether their periods have a common multiple."""

    shifts: tuple[float, ...]
    score: float
    common: bool


def common_period(iterations: Sequence[float], quantum: float = QUANTUM, longest: int = LONGEST) -> tuple[float, bool]:
    """The perimeter, and whether it is a common multiple: periods without one in the limit are looked at for so many iterations."""
    quanta = [max(round(each / quantum), 1) for each in iterations]
    if all(abs(each - quanta[k] * quantum) <= _SAME * each for k, each in enumerate(iterations)):
        least = math.lcm(*quanta)
        if least <= longest * min(quanta):
            return least * quantum, True
    for turns in range(1, longest + 1):  # periods that are no multiples of the quantum may still have one
        perimeter = turns * iterations[0]
        if all(abs(perimeter / each - round(perimeter / each)) <= 1e-7 for each in iterations):
            return perimeter, True
    return longest * min(iterations), False


def _edges(circles: Sequence[Circle], perimeter: float) -> tuple[Floats, Floats]:
    """Instants at which demand changes, and the demand of each job from each to the next: [job, piece]."""
    cuts = {0.0, perimeter}
    starts: list[list[float]] = []
    for one in circles:
        begin = (one.shift + one.iteration - one.network) % one.iteration
        first = [begin + turn * one.iteration for turn in range(-1, math.ceil(perimeter / one.iteration) + 1)]
        starts.append(first)
        cuts.update(edge for start in first for edge in (start, start + one.network) if 0.0 < edge < perimeter)
    edges = np.array(sorted(cuts))
    middle = (edges[:-1] + edges[1:]) / 2.0
    demand = np.zeros((len(circles), len(middle)))
    for job, one in enumerate(circles):
        since = (middle - one.shift - (one.iteration - one.network)) % one.iteration
        demand[job] = np.where(since < one.network, one.bandwidth, 0.0)
    return edges, demand


def score_of(circles: Sequence[Circle], capacity: float, perimeter: float | None = None) -> float:
    """One less the excess over the circle, as a part of what the link could carry: 1 fits, and many jobs may fall below zero."""
    if len(circles) < 2:
        return 1.0
    around = common_period([one.iteration for one in circles])[0] if perimeter is None else perimeter
    edges, demand = _edges(circles, around)
    excess = np.maximum(demand.sum(axis=0) - capacity, 0.0)
    return 1.0 - float((excess * np.diff(edges)).sum()) / (around * capacity)


def stretched(circles: Sequence[Circle], capacity: float) -> Floats:
    """Seconds that an iteration of each job takes: its own, and what it loses to others while it communicates.

    Where demand exceeds the link, those that send have max-min fair parts of it. For two jobs at the full rate of the link this is exact:
    both go along their own circles in step, and slowly where they meet.
    """
    around = common_period([one.iteration for one in circles])[0]
    edges, demand = _edges(circles, around)
    length, lost = np.diff(edges), np.zeros(len(circles))
    for piece in np.flatnonzero(demand.sum(axis=0) > capacity * (1.0 + _SAME)).tolist():
        asks = demand[:, piece]
        part = fair_parts(asks, capacity)
        sends = asks > 0.0
        lost[sends] += (asks[sends] / part[sends] - 1.0) * length[piece]
    iteration = np.array([one.iteration for one in circles])
    return np.asarray(iteration + lost * iteration / around)


def fair_parts(asks: Floats, capacity: float) -> Floats:
    """Max-min fair parts of one link: those that ask for little get it, the others equal parts of the rest."""
    part, left, open_jobs = np.zeros(len(asks)), capacity, int((asks > 0.0).sum())
    for job in np.argsort(asks, kind="stable").tolist():
        if asks[job] > 0.0:
            part[job] = min(float(asks[job]), left / open_jobs)
            left, open_jobs = left - part[job], open_jobs - 1
    return part


def best_shifts(circles: Sequence[Circle], capacity: float, fixed: Sequence[int] = (0,)) -> Fit:
    """The shifts of greatest score: a grid of angles for two jobs, coordinate descent over the same grid for more."""
    around, common = common_period([one.iteration for one in circles])
    chosen = [one._replace(shift=one.shift if job in fixed else 0.0) for job, one in enumerate(circles)]
    best = score_of(chosen, capacity, around)
    free = [job for job in range(len(circles)) if job not in fixed]
    for _ in range(1 if len(free) < 2 else _ROUNDS):
        before = best
        for job in free:
            for angle in range(ANGLES):
                turned = chosen[job]._replace(shift=angle / ANGLES * chosen[job].iteration)
                score = score_of([*chosen[:job], turned, *chosen[job + 1 :]], capacity, around)
                if score > best + _SAME:
                    best, chosen[job] = score, turned
        if best <= before + _SAME:
            break
    return Fit(tuple(one.shift for one in chosen), best, common)


# Links that gangs share, by circles in place of flows: `--performance link-circles`, a fast stand-in for
# `shared-links`.
#
# Each link is looked at alone, and a gang is as slow as on the worst of its links. It is exact for two jobs at the
# full rate of one link; `docs/links.md` has its error elsewhere.


@lru_cache(maxsize=1 << 14)
def circle_times(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> Floats:
    """Seconds of an iteration of each, the worst over its links."""
    found = np.array([flow.compute + flow.network for flow in flows])
    for link, most in enumerate(capacity):
        there = [at for at, flow in enumerate(flows) if link in flow.links]
        found[there] = np.maximum(found[there], stretched([circle_of(flows[at], most) for at in there], most))
    return found


def circle_of(flow: Flow, most: float) -> Circle:
    """A job on one link, which has so much."""
    return Circle(flow.compute + flow.network, flow.network, flow.bandwidth if np.isfinite(flow.bandwidth) else most, flow.shift)


@dataclass(frozen=True)
class LinkCircles(PerformanceModel):
    """Gangs are as much slower as what they lose on the worst of their links while they communicate."""

    about_everyone: ClassVar[bool] = True

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        return rates_by(gangs, slowdowns(gangs.everyone, circle_times))
