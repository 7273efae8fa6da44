"""A whole decision of AlloX in one compiled call, for jobs of one machine that find a node at once.

The same steps as by way of `Instant` and `allox.decide`, which is the way for everything else: gangs, preemption, short runs for estimates,
and decisions in which somebody finds no node. Most decisions are small, and what they cost is going back and forth between steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled, kernel
from gantline.core.snapshot import Snapshot
from gantline.policies.allox import gather, machines
from gantline.policies.allox.allox import stands
from gantline.policies.allox.event import any_set, decide_columns
from gantline.policies.allox.seats import first_unseated
from gantline.policies.allox.state import Parts, State, pack, recall, remember, unpack
from gantline.policies.allox.ticks import FINE, TICKS, count_ticks

#: what comes of it: not in this way; nobody can start; somebody may
_OTHERWISE, _NOBODY, _DECIDED = 0, 1, 2
Decided = tuple[int, Ints, Ints, int, bool, Parts]


class Answer(NamedTuple):
    """Who stays or starts, by position in the snapshot, and with which option."""

    job: Ints
    option: Ints
    competing: int  # how many could have started
    steady: bool  # whether it holds while nothing happens
    state: State | None  # what makes the next matching quick


def answer_at_once(snapshot: Snapshot, weight: Floats, alpha: float, age: float, state: State | None) -> Answer | None:
    """The decision; None: it has to be made step by step. `weight` says how much users count, where it is above zero."""
    jobs, types = snapshot.jobs, len(snapshot.cluster.types)
    (F, I), options, (NF, NI, _) = jobs.matrices(), snapshot.options, snapshot.cluster.matrices()
    known = unpack(state, 2 * types)
    how, job, option, competing, steady, parts = decide_at_once(
        F, I, options.F, options.I, NF, NI, _measured(snapshot), jobs.rows, snapshot.now, types, weight, alpha, age, *known
    )
    if how == _OTHERWISE:
        return None
    return Answer(job, option, competing, steady, state if how == _NOBODY else pack(parts))


def _measured(snapshot: Snapshot) -> Floats:
    """Per type and job: how much faster than listed it was measured to be; NaN: nobody knows. Empty where nothing was measured."""
    jobs, names = snapshot.jobs, [f"speed.{name}" for name in snapshot.cluster.types]
    known = set(jobs.metrics)
    return np.array([jobs.metric(name) for name in names]) if not known.isdisjoint(names) else np.empty((0, 0))


@compiled
def decide_at_once(
    F: Floats,
    I: Ints,
    OF: Floats,
    OI: Ints,
    NF: Floats,
    NI: Ints,
    measured: Floats,
    names: Ints,
    now: float,
    types: int,
    given: Floats,
    alpha: float,
    age: float,
    price: Ints,
    depth: Ints,
    jobs: Ints,
    kinds: Ints,
    positions: Ints,
) -> Decided:
    """How it went, the positions and options of those who stay or start, how many compete, whether it is steady, and the solver's state."""
    everybody = np.empty(I.shape[1], np.int64)
    for row in range(everybody.size):
        everybody[row] = row
    stay, stay_option, compete = gather.split(I, everybody, False)
    unknown = price, depth, jobs, kinds, positions
    if any_gangs(I, OI, compete):
        return _OTHERWISE, stay, stay_option, compete.size, False, unknown
    mine, theirs = believed_speeds(measured, compete), believed_speeds(measured, stay)
    capacity, free, _ = gather.pool(I, OF, OI, NF, NI, stay, given.size, types)
    owner, arrival, weight = gather.owners(F, I, everybody, compete, given.size)
    job, option, kind, time, need = gather.ways(F, I, OF, OI, compete, now, types, capacity, mine)
    machine, release, idle = machines.machines(F, I, OF, OI, NF, NI, stay, now, types, kind, need, theirs)
    way, seconds, gain, further, width = machines.by_kind(owner, job, kind, time, need, capacity)
    ticks, until, fault, _ = count_ticks(seconds, release)
    if fault != FINE or not all_above_zero(time):
        return _OTHERWISE, stay, stay_option, compete.size, False, unknown
    if not any_set(idle):
        return _NOBODY, stay, stay_option, compete.size, True, unknown
    for u in range(given.size):
        weight[u] = given[u] if given[u] > 0.0 else weight[u]
    score, further_free = machines.scores(I, OF, OI, stay, given.size, capacity, theirs), beyond(free, types)
    named = picked(names, compete)
    prices, depths, place = recall(price, depth, jobs, kinds, positions, named)
    started, _, _ = decide_columns(
        int(np.rint(now * TICKS)), owner, ticks, turned(width), further, gain, score, weight, alpha,
        older_than(arrival, now, age), machine, until, idle, further_free, prices, depths, place,
    )  # fmt: skip
    begins, begin_kinds, rows, count = np.empty_like(compete), np.empty_like(compete), np.empty_like(compete), stay.size
    all_jobs, all_options = np.empty_like(everybody), np.empty_like(everybody)
    for i in range(stay.size):
        all_jobs[i], all_options[i] = stay[i], stay_option[i]
    for j in range(compete.size):
        if started[j] >= 0:
            chosen, i = option[way[j, started[j]]], count - stay.size
            all_jobs[count], all_options[count] = compete[j], chosen
            begins[i], begin_kinds[i], rows[i] = j, started[j], I[c.OPTION_FIRST, compete[j]] + chosen
            count += 1
    new = count - stay.size
    if first_unseated(OF, OI, NF, NI, rows[:new]) >= 0:
        return _OTHERWISE, stay, stay_option, compete.size, False, unknown
    steady = stands(seconds, width, further, machine, idle, further_free, begins[:new], begin_kinds[:new])
    return _DECIDED, all_jobs[:count], all_options[:count], compete.size, steady, remember(named, prices, depths, place)


@kernel
def any_gangs(I: Ints, OI: Ints, rows: Ints) -> bool:
    """Whether one of the rows may take several devices at once."""
    for row in rows:
        for option in range(I[c.OPTION_FIRST, row], I[c.OPTION_FIRST, row] + I[c.OPTION_COUNT, row]):
            if OI[c.O_GPUS, option] > 1:
                return True
    return False


@kernel
def all_above_zero(values: Floats) -> bool:
    """Whether all are; NaN is not."""
    above = 0
    for value in values:
        above += value > 0.0
    return above == values.size


@compiled
def believed_speeds(measured: Floats, rows: Ints) -> Floats:
    """Of these rows; one where nothing was measured."""
    speed = np.ones((measured.shape[0], rows.size))
    for t in range(measured.shape[0]):
        for i in range(rows.size):
            if not np.isnan(measured[t, rows[i]]):
                speed[t, i] = measured[t, rows[i]]
    return speed


@compiled
def older_than(arrival: Floats, now: float, age: float) -> Ints:
    """Who has waited that long, in order of arrival."""
    found, count = np.empty(arrival.size, np.int64), 0
    for j in range(arrival.size):
        if now - arrival[j] >= age:
            found[count] = j
            count += 1
    return found[:count]


# Written out, because slices, copies and choices of NumPy take longer to compile than all of this.
@compiled
def beyond(values: Floats, first: int) -> Floats:
    """All from this one on."""
    found = np.empty(values.size - first)
    for i in range(found.size):
        found[i] = values[first + i]
    return found


@compiled
def picked(values: Ints, places: Ints) -> Ints:
    """The values at these places."""
    found = np.empty(places.size, np.int64)
    for i in range(places.size):
        found[i] = values[places[i]]
    return found


@compiled
def turned(matrix: Ints) -> Ints:
    """Rows become columns."""
    found = np.empty((matrix.shape[1], matrix.shape[0]), np.int64)
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            found[j, i] = matrix[i, j]
    return found
