"""What one event of AlloX works on, as bundles of columns that compiled functions take, and what one solve leaves for the next.

Seconds are whole microseconds here (ticks), so that equal costs are equal whatever was computed before. The state, prices per class and
every job's place, speeds the next solve up and has no influence on its answer, so it may be dropped, or come from another instance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import compiled_from_zero as compiled
from gantline.systems.allox.policies.slot_flow import FORBIDDEN


class EngineTables(NamedTuple):
    """The engine's tables: numbers and codes of jobs, of options and of nodes."""

    F: Floats
    I: Ints
    OF: Floats
    OI: Ints
    NF: Floats
    NI: Ints


class WaitingJobs(NamedTuple):
    """Jobs that wait, in order of arrival. ``times`` and ``width`` are [type, job], ``need`` and ``gain`` begin with the job."""

    owner: Ints
    times: Ints  # in ticks
    width: Ints  # machines of a gang
    need: Floats
    gain: Floats  # what a start adds to the score of the owner


class UserScores(NamedTuple):
    """What users have, and how much each counts."""

    score: Floats
    weight: Floats


class MachineColumns(NamedTuple):
    """Machines, each of one type, and what is free of everything else. A machine that is not idle is free at ``release``."""

    kind: Ints
    release: Ints  # in ticks
    idle: Bools
    free: Floats


class SlotPrices(NamedTuple):
    """What the matching solver goes on from, and changes."""

    price: Ints
    depth: Ints
    place: Ints


State = dict[str, Ints]
Parts = tuple[Ints, Ints, Ints, Ints, Ints]


def unpack(state: State | None, types: int) -> Parts:
    """The arrays of a state: price, depth, job names in order, and each job's type and position."""
    if state is None or len(state["price"]) != types:
        nothing = np.empty(0, np.int64)
        return np.empty((types, 0), np.int64), np.zeros(types, np.int64), nothing, nothing, nothing
    return state["price"], state["depth"], state["jobs"], state["type"], state["position"]


def pack(parts: Parts) -> State:
    """The inverse of `unpack`."""
    return dict(zip(("price", "depth", "jobs", "type", "position"), parts))


@compiled
def recall(known: Parts, names: Ints) -> tuple[Ints, Ints, Ints]:
    """SlotPrices, depths and guesses at the places of the named jobs (-1: none), with a position for each job."""
    price, depth, jobs, kind, position = known
    types, known_levels = price.shape
    levels = max(names.size, 1)
    kept = min(levels, known_levels)
    prices, depths = np.zeros((types, levels), np.int64), np.zeros(types, np.int64)
    for t in range(types):
        depths[t] = min(depth[t], kept)
        prices[t, :kept] = price[t, :kept]
    place = np.full(names.size, -1, np.int64)
    for j in range(names.size):
        i = np.searchsorted(jobs, names[j])
        if i < jobs.size and jobs[i] == names[j] and position[i] <= kept:
            place[j] = kind[i] * levels + position[i] - 1
    return prices, depths, place


@compiled
def remember(names: Ints, prices: SlotPrices) -> Parts:
    """The prices in use and the places of the jobs that have one, jobs in order of their names."""
    price, depth, place = prices.price, prices.depth, prices.place
    count = deepest = 0
    for j in range(place.size):
        count += place[j] >= 0
    for t in range(depth.size):
        deepest = max(deepest, depth[t])
    placed, named = np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = 0
    for j in range(place.size):
        if place[j] >= 0:
            placed[at], named[at] = j, names[j]
            at += 1
    jobs, kind, position = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    order = np.argsort(named, kind="mergesort")
    for i in range(count):
        j = placed[order[i]]
        jobs[i], kind[i], position[i] = names[j], place[j] // price.shape[1], place[j] % price.shape[1] + 1
    return price[:, :deepest].copy(), depth, jobs, kind, position


TICKS = 1e6
LONGEST = 2.0**60

FINE, NOT_POSITIVE, NO_RELEASE, TOO_LONG = 0, 1, 2, 3


@compiled
def count_ticks(times: Floats, release: Floats) -> tuple[Ints, Ints, int, int]:
    """Times by type and job, releases, and a code with the row that is at fault; impossible times are FORBIDDEN."""
    jobs, types = times.shape
    ticks, until = np.zeros((types, jobs), np.int64), np.zeros(release.size, np.int64)
    longest = latest = 0.0
    for j in range(jobs):
        for t in range(types):
            if not np.isfinite(times[j, t]):
                ticks[t, j] = FORBIDDEN
                continue
            if times[j, t] <= 0.0:
                return ticks, until, NOT_POSITIVE, j
            longest = max(longest, times[j, t])
            ticks[t, j] = max(np.int64(np.rint(min(times[j, t] * TICKS, LONGEST))), np.int64(1))
    for m in range(release.size):
        if not np.isfinite(release[m]):
            return ticks, until, NO_RELEASE, m
        latest = max(latest, abs(release[m]))
        until[m] = np.int64(np.rint(min(max(release[m] * TICKS, -LONGEST), LONGEST)))
    if (longest * (jobs + 1) + latest) * TICKS > LONGEST:
        return ticks, until, TOO_LONG, 0
    return ticks, until, FINE, 0


def to_ticks(times: Floats, release: Floats) -> tuple[Ints, Ints]:
    """Times by type and job and release times, or a clear refusal."""
    ticks, until, code, row = count_ticks(times, release)
    if code == NOT_POSITIVE:
        raise UsageError(f"the job in row {row} has a duration of zero or below", fix="durations must be positive")
    if code == NO_RELEASE:
        raise UsageError(f"machine {row} has no release time", fix="leave out machines that are down")
    if code == TOO_LONG:
        raise UsageError("times are too long to be counted in microseconds", fix="give times in seconds")
    return ticks, until
