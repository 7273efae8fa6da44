"""A whole decision of AlloX in one compiled call.

The same steps as by way of `Instant` and `allox.decide`, which is the way for everything else: preemption, short runs for estimates, and
decisions in which a job finds no node. Most decisions are small, and what they cost is going back and forth between steps. What
is compiled here is not compiled again for the steps, unless a run needs them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.phases import PENDING
from gantline.core.snapshot import Snapshot
from gantline.systems.allox.policies import gather, machines
from gantline.systems.allox.policies.allox import Decision, Machines, Waiting, stands
from gantline.systems.allox.policies.behind import behind_gangs
from gantline.systems.allox.policies.columns import EngineTables, MachineColumns, SlotPrices, UserScores, WaitingJobs
from gantline.systems.allox.policies.event import any_set, decide_columns
from gantline.systems.allox.policies.seats import first_unseated, seat
from gantline.systems.allox.policies.state import Parts, State, pack, recall, remember, unpack
from gantline.systems.allox.policies.ticks import FINE, TICKS, count_ticks

#: the outcome: not in this way; no job can start; some may
_OTHERWISE, _NO_ROWS, _DECIDED = 0, 1, 2
#: columns of `offers`, what starting a job on a kind of machine would mean; cores and memory of all types follow
_SECONDS, _WIDTH, _OPTION, _STARTS, _NEEDS = range(5)
#: rows of `slots`, what there is of machines
_KIND, _RELEASE, _IDLE, _SLOT_ROWS = range(4)
Decided = tuple[int, Ints, Ints, int, bool, Parts, Floats, Floats, Floats]


class Answer(NamedTuple):
    """The jobs that stay or start, by position in the snapshot, and their options."""

    job: Ints
    option: Ints
    competing: int  # how many could have started
    steady: bool  # whether it holds while nothing happens
    state: State | None  # what makes the next matching quick


def answer_at_once(
    snapshot: Snapshot, weight: Floats, alpha: float, age: float, patience: float, fill: bool, state: State | None
) -> Answer | None:
    """The decision; None: it has to be made step by step. `weight` says how much users count, where it is above zero."""
    jobs, types = snapshot.jobs, len(snapshot.cluster.types)
    (F, I), options, (NF, NI, _) = jobs.matrices(), snapshot.options, snapshot.cluster.matrices()
    how, job, option, competing, steady, parts, offers, slots, free = decide_at_once(
        EngineTables(F, I, options.F, options.I, NF, NI),
        _measured(snapshot),
        jobs.rows,
        snapshot.now,
        types,
        weight,
        alpha,
        age,
        patience,
        unpack(state, 2 * types),
    )
    if how == _OTHERWISE:
        return None
    if fill and len(offers):
        more, ways = _behind(offers.reshape(competing, 2 * types, -1), slots, free, snapshot.now)
        if len(more):
            waiting = np.flatnonzero(jobs.phase == PENDING)
            job, option = np.concatenate((job, waiting[more])), np.concatenate((option, ways))
            starts = slice(len(jobs) - len(waiting), None)
            if first_unseated(options.F, options.I, NF, NI, I[c.OPTION_FIRST][job[starts]] + option[starts]) >= 0:
                return None
    return Answer(job, option, competing, steady, state if how == _NO_ROWS else pack(parts))


def _behind(offers: Floats, slots: Floats, free: Floats, now: float) -> tuple[Ints, Ints]:
    """Jobs that start on machines that gangs wait for, by number among those competing, and their options."""
    nothing = np.empty(0)
    time, width, gain = offers[..., _SECONDS], offers[..., _WIDTH].astype(np.int64), offers[..., :0]
    named = np.arange(len(offers))
    waiting = Waiting(named, named, nothing, time, gain, offers[..., _NEEDS:], width)
    jobs, kinds = np.nonzero(offers[..., _STARTS])
    there = Machines(slots[_KIND].astype(np.int64), slots[_RELEASE], slots[_IDLE] == 1.0, free)
    more, kinds = behind_gangs(waiting, there, Decision(jobs, kinds, nothing, 0), now)
    return more, offers[more, kinds, _OPTION].astype(np.int64)


def _measured(snapshot: Snapshot) -> Floats:
    """Per type and job: how much faster than listed it was measured to be; NaN: unknown. Empty where nothing was measured."""
    jobs, names = snapshot.jobs, [f"speed.{name}" for name in snapshot.cluster.types]
    known = set(jobs.metrics)
    return np.array([jobs.metric(name) for name in names]) if not known.isdisjoint(names) else np.empty((0, 0))


@compiled
def decide_at_once(
    tables: EngineTables,
    measured: Floats,
    names: Ints,
    now: float,
    types: int,
    given: Floats,
    alpha: float,
    age: float,
    patience: float,
    known: Parts,
) -> Decided:
    """The outcome, the positions and options of jobs that stay or start, how many compete, whether it is steady, the solver's state.

    And where a gang is left waiting: what every job could have, of which machines, and what is free besides; else nothing.
    """
    F, I, OF, OI, NF, NI = tables
    every_row = np.arange(I.shape[1])
    stay, stay_option, compete = gather.split(I, every_row, False)
    nothing = np.zeros((0, 0), np.float64)
    mine, theirs = believed_speeds(measured, compete), believed_speeds(measured, stay)
    capacity, free, _ = gather.pool(I, OF, OI, NF, NI, stay, given.size, types)
    owner, arrival, weight = gather.owners(F, I, every_row, compete, given.size)
    job, option, kind, time, need = gather.ways(F, I, OF, OI, compete, now, types, capacity, mine)
    machine, release, idle = machines.machines(tables, stay, now, types, kind, need, theirs)
    way, seconds, gain, further, width = machines.by_kind(owner, job, kind, time, need, capacity)
    ticks, until, fault, _ = count_ticks(seconds, release)
    if fault != FINE or not (time > 0.0).all():
        return _OTHERWISE, stay, stay_option, compete.size, False, known, nothing, nothing, free
    if not any_set(idle):
        return _NO_ROWS, stay, stay_option, compete.size, True, known, nothing, nothing, free
    for u in range(given.size):
        weight[u] = given[u] if given[u] > 0.0 else weight[u]
    score, further_free = machines.scores(I, OF, OI, stay, given.size, capacity, theirs), free[types:]
    named = names[compete]
    price, depth, place = recall(known, named)
    prices = SlotPrices(price, depth, place)
    started, _, _ = decide_columns(
        int(np.rint(now * TICKS)),
        WaitingJobs(owner, ticks, np.ascontiguousarray(width.T), further, gain),
        UserScores(score, weight),
        alpha,
        older_than(arrival, width, now, age, patience),
        MachineColumns(machine, until, idle, further_free),
        prices,
    )
    begins, begin_kinds, rows = np.zeros(compete.size, np.int64), np.zeros(compete.size, np.int64), np.zeros(compete.size, np.int64)
    count = stay.size
    all_jobs, all_options = np.zeros(every_row.size, np.int64), np.zeros(every_row.size, np.int64)
    all_jobs[: stay.size], all_options[: stay.size] = stay, stay_option
    for j in range(compete.size):
        if started[j] >= 0:
            chosen, i = option[way[j, started[j]]], count - stay.size
            all_jobs[count], all_options[count] = compete[j], chosen
            begins[i], begin_kinds[i], rows[i] = j, started[j], I[c.OPTION_FIRST, compete[j]] + chosen
            count += 1
    new = count - stay.size
    if seat(OF, OI, NF.copy(), NI.copy(), rows[:new], np.zeros(NI.shape[1] + 1, np.int64), np.zeros(NI.shape[1] + 1, np.int64)) >= 0:
        return _OTHERWISE, stay, stay_option, compete.size, False, known, nothing, nothing, free
    steady = stands(seconds, width, further, machine, idle, further_free, begins[:new], begin_kinds[:new])
    offers, slots = nothing, nothing
    if not steady and any_gangs(width, started):
        offers, slots = offered(way, option, seconds, width, further, started), listed(machine, release, idle)
    parts = remember(named, prices)
    return _DECIDED, all_jobs[:count], all_options[:count], compete.size, steady, parts, offers, slots, further_free


@kernel
def any_gangs(width: Ints, started: Ints) -> bool:
    """Whether one that does not start may take several machines at once."""
    gangs = 0
    for j in range(started.size):
        for k in range(width.shape[1]):
            gangs += started[j] < 0 and width[j, k] > 1
    return gangs > 0


@compiled
def offered(way: Ints, option: Ints, seconds: Floats, width: Ints, further: Floats, started: Ints) -> Floats:
    """By job, then by kind of machine, what it would take, and whether it starts so."""
    jobs, kinds = way.shape
    offers = np.zeros((jobs * kinds, _NEEDS + kinds), np.float64)
    for j in range(jobs):
        for k in range(kinds):
            at = j * kinds + k
            offers[at, _SECONDS], offers[at, _WIDTH], offers[at, _STARTS] = seconds[j, k], width[j, k], started[j] == k
            offers[at, _OPTION] = option[way[j, k]] if way[j, k] >= 0 else -1
            for r in range(kinds):
                offers[at, _NEEDS + r] = further[j, k, r]
    return offers


@compiled
def listed(machine: Ints, release: Floats, idle: Bools) -> Floats:
    """Kind, release and idleness of every machine as one table."""
    slots = np.zeros((_SLOT_ROWS, machine.size), np.float64)
    for m in range(machine.size):
        slots[_KIND, m], slots[_RELEASE, m], slots[_IDLE, m] = machine[m], release[m], idle[m]
    return slots


@compiled
def believed_speeds(measured: Floats, rows: Ints) -> Floats:
    """Of these rows; one where nothing was measured."""
    speed = np.full((measured.shape[0], rows.size), 1.0, np.float64)
    for t in range(measured.shape[0]):
        for i in range(rows.size):
            if not np.isnan(measured[t, rows[i]]):
                speed[t, i] = measured[t, rows[i]]
    return speed


@compiled
def older_than(arrival: Floats, width: Ints, now: float, age: float, patience: float) -> Ints:
    """The jobs that have waited that long, in order of arrival; gangs need not wait longer than `patience`."""
    found, count = np.zeros(arrival.size, np.int64), 0
    for j in range(arrival.size):
        widest = 1
        for k in range(width.shape[1]):
            widest = max(widest, width[j, k])
        if now - arrival[j] >= (age if widest == 1 else min(age, patience)):
            found[count] = j
            count += 1
    return found[:count]
