"""The loop on records, for keys that are sums of columns: every step costs what changed, not what runs or waits.

Finishes and levels come from heaps, ranks from a heap that need not be touched while keys keep their order, those that wait from lanes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import HOST_RESOURCES, Device, Job, Node, Option
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.jit import variant
from gantline.core.phases import HELD_BACK, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.engine.agenda import next_look
from gantline.engine.declared_key import Coefficient, LinearKey, coefficients
from gantline.engine.dense.backfill import INSTANT, Promises, fill_gaps, forecast
from gantline.engine.dense.devices import MOST_DEVICES, ChainLink, Devices, devices
from gantline.engine.dense.gangs import LoopSetting, complete, next_due, set_due, to_columns, to_lines
from gantline.engine.dense.heap import DUE, LEVEL, RANK, Heaps, drop, first, heaps, put
from gantline.engine.dense.low_ranks import Motion, Pass, PassCount, PassLine, rank_key
from gantline.engine.dense.queues import Lane, Lanes, enter, key_behind, queues
from gantline.engine.dense.records import RECORD_FLOATS, RECORD_INTS, Key, Record, Records, key_at, key_of, next_level, slope
from gantline.engine.dense.walk import walk, walk_without_stops
from gantline.engine.drivers.six_steps import (
    LoopBounds,
    LoopClock,
    LoopCount,
    LoopTime,
    Outcome,
    Verbs,
    clock_of,
    count_in,
    loop_over,
    take_order,
)
from gantline.engine.drivers.stepping import Standstill
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
from gantline.engine.log import LogColumns, LogSize
from gantline.engine.settings import Amount, Switch
from gantline.engine.state import State
from gantline.engine.walk.ranking import name_blocked

_ARRIVED, _LOAD_LIMIT = int(Reason.ARRIVED), int(Reason.LOAD_LIMIT)
PREEMPTS, PROMISES = True, False  # whether gangs may be stopped, whether there is backfilling; known when it is compiled (`variant`)
# more places of `number`, beyond those of `engine.lists`: devices that admitted jobs ask for; up to which row jobs come as inputs
DEMAND, INPUTS = 7, 8
NUMBERS = 9


class OnRecords(NamedTuple):
    """All that the loop works on."""

    jobs: Records
    h: Heaps
    qs: Lanes
    ds: Devices
    log: LogColumns
    setting: LoopSetting
    key: Key
    work: Pass
    plan: Promises


@kernel
def has_room(on: OnRecords, number: Ints, clock: LoopClock) -> bool:
    log, room = on.log, on.work.line.shape[1] + 64
    fits = log.written[LogSize.INTERVALS] + room <= log.entry.shape[1]
    return bool(fits and log.written[LogSize.DEVICES] + room <= log.device.shape[0])


@kernel
def has_ended(on: OnRecords, row: int) -> bool:
    return not np.isnan(on.jobs.f[row, Record.FINISH])


@kernel
def due(on: OnRecords, number: Ints) -> float:
    """When the next row arrives."""
    f = on.jobs.f
    return float(f[number[RowCount.NEXT], Record.ARRIVAL]) if number[RowCount.NEXT] < f.shape[0] else np.inf


@kernel
def next_end(on: OnRecords, number: Ints) -> float:
    """When the next gang is done, or its estimate proves too low."""
    return next_due(on.jobs, on.h) if PREEMPTS else first(on.h, DUE)


@kernel
def finish(on: OnRecords, number: Ints, now: float) -> None:
    """Complete every gang that has done its work by `now`, and raise estimates that turned out too low.

    A job that comes as an input makes the engine look at those that run when it comes: estimates may prove too low at that instant.
    """
    jobs, h, ds, log, setting, key, work = on.jobs, on.h, on.ds, on.log, on.setting, on.key, on.work
    f = jobs.f
    number[RowCount.FINISHED] = 0
    boundary, coming, at = setting.SI[Switch.BOUNDARY] == 1, number[RowCount.NEXT], -np.inf
    while at < now:
        at = now
        if coming < number[INPUTS] and not boundary:
            at = min(now, f[coming, Record.ARRIVAL])
            coming += 1
        while (next_due(jobs, h) if PREEMPTS else first(h, DUE)) <= at:
            row = h.row[DUE, 0]
            end = f[row, Record.SINCE] + (f[row, Record.WORK] - f[row, Record.DONE]) / f[row, Record.RATE]
            if end <= at:
                complete(jobs, h, ds, log, row, now if boundary else end)
                number[RowCount.ACTIVE] -= 1
                number[DEMAND] -= jobs.i[row, Record.NEED]
                number[RowCount.FINISHED] += 1
                continue
            # its estimate was too low. Mean residual life of a heavy tail: as long again
            f[row, Record.ESTIMATE] = 2.0 * (f[row, Record.DONE] + f[row, Record.RATE] * max(0.0, at - f[row, Record.SINCE]))
            set_due(jobs, h, row)
            put(h, DUE, row, f[row, Record.DUE])  # later than it stood; else it would stay on top, and be looked at for ever
            if PREEMPTS:
                put(h, RANK, row, rank_key(jobs, row, key, work, at))


@kernel
def arrive(on: OnRecords, number: Ints, now: float, load_limit: float) -> None:
    """Put rows that have arrived by `now` into their lanes: all of them, or in order while demand is within the limit (GPUs)."""
    jobs, key = on.jobs, on.key
    f, i = jobs.f, jobs.i
    rows = f.shape[0]
    while number[RowCount.NEXT] < rows and f[number[RowCount.NEXT], Record.ARRIVAL] <= now:
        row = number[RowCount.NEXT]
        number[RowCount.NEXT] += 1
        i[row, Record.STATE] = HELD_BACK
        i[row, Record.WHY] = _LOAD_LIMIT
        f[row, Record.SINCE] = f[row, Record.ARRIVAL]
    number[RowCount.ADMITTED] = 0
    while number[RowCount.HELD] < number[RowCount.NEXT] and number[DEMAND] <= load_limit:
        row = number[RowCount.HELD]
        number[RowCount.HELD] += 1
        number[DEMAND] += i[row, Record.NEED]
        number[RowCount.ACTIVE] += 1
        number[RowCount.ADMITTED] += 1
        i[row, Record.STATE] = PENDING
        i[row, Record.WHY] = _ARRIVED
        f[row, Record.ADMITTED] = now
        f[row, Record.KEY] = key_of(jobs, row, key, 0.0)
        enter(on.qs, i[row, Record.LANE], f[row, Record.KEY], row, max(f[row, Record.ESTIMATE], INSTANT))


@kernel
def _change_levels(jobs: Records, h: Heaps, key: Key, work: Pass, now: float) -> None:
    """Rank jobs anew that have reached a level, or are so close to it that only the exact sum decides."""
    until = now + 1e-6 + 4e-15 * now
    count = 0
    while h.size[LEVEL] > 0 and h.key[LEVEL, 0] <= until:
        row = h.row[LEVEL, 0]
        drop(h, LEVEL, row)
        work.line[PassLine.BEGUN, count] = row
        count += 1
    for place in range(count):
        row = work.line[PassLine.BEGUN, place]
        put(h, LEVEL, row, next_level(jobs, row, key, now))
        put(h, RANK, row, rank_key(jobs, row, key, work, now))


@kernel
def _next_change(jobs: Records, h: Heaps, qs: Lanes, key: Key, work: Pass, now: float, enough: float) -> float:
    """The first instant at which a row that runs might fall behind one that waits, or any such instant up to `enough`."""
    soonest, size = np.inf, h.size[RANK]
    place = work.number[PassCount.CROSSED]  # the row that came first last time often does so again
    for _ in range(size):
        place = place + 1 if place + 1 < size else 0
        row = h.row[RANK, place]
        rise = slope(jobs, row, key)
        if rise <= 0.0:
            continue
        mark = jobs.f[row, Record.KEY] if jobs.f[row, Record.LAST_START] == now else key_at(jobs, row, key, now)
        work.number[PassCount.EVALUATED] += 1
        behind = key_behind(qs, mark, row)
        if behind < np.inf:
            soonest = min(soonest, now + (behind - mark) / rise)
            if soonest <= enough:  # the next look is at `enough` at the earliest, so it does not matter which comes first
                work.number[PassCount.CROSSED] = place - 1
                break
    return max(soonest, now)


@kernel
def _next_movable(jobs: Records, h: Heaps, now: float, min_run: float) -> float:
    """The next instant at which a gang has had its minimum run time, so that it may be stopped."""
    soonest = np.inf
    if min_run > 0.0:
        for place in range(h.size[RANK]):
            at = jobs.f[h.row[RANK, place], Record.LAST_START] + min_run
            if now < at < soonest:
                soonest = at
    return soonest


@kernel
def decide(on: OnRecords, number: Ints, clock: LoopClock, now: float) -> int:
    """Nothing is to be decided while nothing waits."""
    if on.qs.waiting[0] > 0:
        count, work = clock.number, on.work
        count[LoopCount.DECISIONS] += 1
        if PREEMPTS and on.key.thresholds.shape[0] > 0:
            _change_levels(on.jobs, on.h, on.key, work, now)
        if PROMISES:
            fill_gaps(on.jobs, on.h, on.qs, on.ds, on.log, on.setting, work, on.plan, number[RowCount.HELD], now)
        else:
            walk(on.jobs, on.h, on.qs, on.ds, on.log, on.setting, on.key, work, now)
        count[LoopCount.STARTED], count[LoopCount.STOPPED] = work.number[PassCount.STARTED], work.number[PassCount.STOPPED]
    return Outcome.GO_ON


@kernel
def wake(on: OnRecords, number: Ints, clock: LoopClock, now: float) -> float:
    """When the order of what runs and waits may change by itself, or a gang may be stopped that may not yet."""
    if not PREEMPTS or on.qs.waiting[0] == 0:
        return np.inf
    jobs, h, key, length, quantum = on.jobs, on.h, on.key, clock.time[LoopTime.ROUND], clock.time[LoopTime.QUANTUM]
    change, level = np.inf, np.inf
    if key.weight[Coefficient.MOVES] == 1.0:
        if on.work.motion[Motion.RISES] == 1.0:
            enough = now + length if length > 0.0 else next_look(now, now, quantum)
            change = _next_change(jobs, h, on.qs, key, on.work, now, enough)
        if h.size[LEVEL] > 0:
            level = h.key[LEVEL, 0]
        if length == 0.0:
            change = next_look(change, now, quantum)
            if level <= now:
                level = next_look(now, now, quantum)
    return min(min(change, level), _next_movable(jobs, h, now, on.setting.SF[Amount.MIN_RUN]))


def _compiled(name: str, **known: Any) -> Any:
    """A run compiles only what it can reach: stopping and backfilling are most of the code, and many policies do neither."""
    own: dict[str, Any] = {verb.__name__: variant(verb, f"{verb.__name__}_{name}", **known) for verb in (finish, decide, wake, next_end)}
    return loop_over(Verbs(due=due, arrive=arrive, has_room=has_room, has_ended=has_ended, **own), f"run_{name}", __name__)


run_with_stops = _compiled("with_stops")
run_in_order = _compiled("in_order", PREEMPTS=False, walk=walk_without_stops)
run_with_promises = _compiled("with_promises", PREEMPTS=False, PROMISES=True)


def run_records(on: OnRecords, number: Ints, clock: LoopClock) -> int:
    """Run until everything has ended (or a bound is reached); comes back early when the log is full."""
    if on.plan.promises > 0.0:  # which stop nothing
        return int(run_with_promises(on, number, clock))
    return int(run_with_stops(on, number, clock) if on.setting.SI[Switch.PREEMPT] == 1 else run_in_order(on, number, clock))


# --- from the tables to the records, and back when the loop ends --------------------------------------------------------


def why_not_on_records(state: State, midway: bool = False) -> str:
    """What records cannot represent of this run; empty: they can represent all of it. `midway`: where it begins does not matter."""
    t, SI = state.tables, state.SI
    OI, OF, I, kind = t.options.I, t.options.F, t.I, t.NI[Node.TYPE]
    if not state.rule.on_records:
        return f"placement '{state.placement.name}' is known on the tables only"
    if SI[Switch.KEEP_EVICTIONS]:
        return f"regime '{state.regime.name}' keeps evictions that turn out useless"
    if I.shape[1] == 0:
        return "there are no jobs"
    if not midway and (state.lists.number.any() or I[Job.PHASE].any()):
        return "it begins in the middle of a run"
    if (kind != kind[0]).any() or (OI[Option.TYPE] != kind[0]).any():
        return "there are several device types"
    if (I[Job.OPTION_COUNT] != 1).any() or (I[Job.GPUS] != I[Job.SMALLEST]).any():
        return "jobs may run in several ways"
    if (OI[Option.GPUS] <= 0).any() or OI[Option.NODES].any():
        return "jobs ask for nodes, or for no GPU"
    if OF[Option.CPUS : Option.CPUS + HOST_RESOURCES].any():
        return "jobs ask for CPUs, memory or storage"
    if I[Job.LOCKED].any():
        return "jobs must keep what they have"
    if (t.NI[Node.UP] != 1).any():
        return "nodes are down"
    if state.rule.one_node and t.NI[Node.RACK].any():
        return "nodes stand in racks, and gangs are placed close together"
    return f"nodes have more than {MOST_DEVICES} devices" if t.NI[Node.GPUS].max() > MOST_DEVICES else ""


def at_asked_speed(state: State) -> bool:
    """Whether every job runs at the speed that it asked for, wherever it is: else records cannot backfill."""
    OF = state.tables.options.F
    return bool((OF[Option.RATE] == 1.0).all() and (OF[Option.RATE_SPREAD] == 1.0).all())


def run_on_records(engine: Engine, key: LinearKey, bounds: LoopBounds) -> int:
    """Run to the end without calling back, but to make room in the log; how it ended (an `Outcome`)."""
    state = engine.state
    take_order(state, engine.policy)
    t, log = state.tables, state.log
    clock = clock_of(state.regime, bounds)
    qs, lane_of = queues(t.I[Job.GPUS], key.promises > 0.0)
    jobs = blank_records(t.F.shape[1])
    to_lines(t.F, t.I, lane_of, jobs.f, jobs.i)
    ds = devices(t.NI, state.rule.one_node)
    width = min(int(t.NI[Node.GPUS].sum()), jobs.f.shape[0]) + 1
    setting = LoopSetting(state.SI, state.SF, t.options.F)
    declared, work = key_and_pass(state, key, width)
    work.motion[Motion.WHOLE] = _whole(state, key)
    plan = forecast(key.promises, jobs.f.shape[0], int(t.NI[Node.GPUS].sum()), _as_planned(state, key))
    on = OnRecords(jobs, heaps(jobs), qs, ds, log.columns, setting, declared, work, plan)
    number, room = np.zeros(NUMBERS, dtype=np.int64), 2 * width + 65536
    code = Outcome.NEED_LOG
    standstill = Standstill(engine)
    while code == Outcome.NEED_LOG and not stands_still(standstill, jobs, number, float(clock.time[LoopTime.NOW])):
        log.reserve(room, room)
        code = run_records(on._replace(log=log.columns), number, clock)
        if bounds.on_progress is not None:
            bounds.on_progress(float(clock.time[LoopTime.NOW]), int(number[RowCount.NEXT]), int(number[RowCount.ACTIVE]))
    write_back(state, jobs, qs, ds, number[: len(RowCount)])
    count_in(engine, clock)
    name_blocked(state)
    return code


def stands_still(guard: Standstill, jobs: Records, number: Ints, now: float) -> bool:
    """Whether no job on the records has worked since the last look, and none is to come."""
    attained = jobs.f[:, Record.SERVICE] + np.where(jobs.i[:, Record.STATE] == RUNNING, np.maximum(0.0, now - jobs.f[:, Record.SINCE]), 0.0)
    return guard.is_here(now, attained, to_come=bool(number[RowCount.NEXT] < len(attained)))


def _as_planned(state: State, key: LinearKey) -> bool:
    """Whether every gang starts and ends in the very second that conservative backfilling plans for it, in order of arrival.

    Whole seconds only: their sums are exact, so that a plan made anew could not differ in the last digit.
    """
    if key.promises <= 1.0:
        return False
    F, SF = state.tables.F, state.SF
    by_arrival = key == LinearKey(arrival=key.arrival, promises=key.promises) and key.arrival > 0
    undisturbed = state.rule.counts and not state.regime.round and not state.regime.finish_at_boundary
    free = not (SF[Amount.START] or SF[Amount.RESUME] or SF[Amount.MOVE])
    known = bool((F[Job.ESTIMATE] == F[Job.WORK]).all() and (F[Job.WORK] >= 1.0).all() and F[Job.ARRIVAL].min() >= 0.0)
    whole = bool((F[Job.WORK] % 1.0 == 0.0).all() and (F[Job.ARRIVAL] % 1.0 == 0.0).all() and F[Job.WORK].sum() < 2.0**52)
    return bool(by_arrival and undisturbed and free and known and whole)


def motion_of(state: State, key: LinearKey) -> np.ndarray:
    """How keys of jobs that run move: all alike, so that their order stays, or each differently."""
    OF, SF = state.tables.options.F, state.SF
    unit = bool((OF[Option.RATE] == 1.0).all() and (OF[Option.RATE_SPREAD] == 1.0).all())
    free = not (SF[Amount.START] or SF[Amount.RESUME] or SF[Amount.MOVE])
    others = key.arrival or key.attained or key.estimate or key.gpus or key.priority or key.first_start or key.thresholds
    alike = not key.attained_gpu and not key.remaining_gpu
    if key.remaining:
        alike = alike and not others and unit and free and key.remaining > 0
        rise = -key.remaining
    else:
        alike = alike and (free or not key.attained)
        rise = key.attained
    return np.array([rise if alike else 0.0, float(not alike), float(key.rises), 0.0])


def _whole(state: State, key: LinearKey) -> float:
    """Where keys are seconds in whole rounds of whole seconds: a power of two above every row, by which they can be multiplied; else 0."""
    F, OF, SF, length = state.tables.F, state.tables.options.F, state.SF, state.regime.round
    if key != LinearKey(attained=1.0) or length <= 0.0 or length % 1.0 or SF[Amount.START] or SF[Amount.RESUME] or SF[Amount.MOVE]:
        return 0.0
    longest = F[Job.WORK].sum() / min(OF[Option.RATE].min(), OF[Option.RATE_SPREAD].min())  # if one ran after the other
    end = F[Job.ARRIVAL].max() + longest + (F.shape[1] + 1.0) * length
    above = float(1 << F.shape[1].bit_length())
    return above if end * above < 2.0**52 and not F[Job.SERVICE].any() else 0.0


def key_and_pass(state: State, key: LinearKey, width: int) -> tuple[Key, Pass]:
    """A key as kernels take it, and what a pass over that many gangs writes down."""
    line, number = np.zeros((len(PassLine), width), dtype=np.int64), np.zeros(len(PassCount), dtype=np.int64)
    return Key(coefficients(key), np.array(key.thresholds, dtype=np.float64)), Pass(line, number, motion_of(state, key))


def blank_records(rows: int) -> Records:
    """Lines for so many rows, each in whole cache lines."""
    return Records(_aligned(rows, RECORD_FLOATS, np.float64), _aligned(rows, RECORD_INTS, np.int32))


def _aligned(rows: int, width: int, kind: Any) -> Any:
    """Lines of that width, the first at the beginning of a cache line."""
    memory = np.empty(rows * width * np.dtype(kind).itemsize + 64, dtype=np.uint8)
    skip = -memory.ctypes.data % 64
    return memory[skip : len(memory) - 64 + skip].view(kind).reshape(rows, width)


def write_back(state: State, jobs: Records, qs: Lanes, ds: Devices, number: Ints) -> None:
    """Write the loop's results into the columns."""
    t, i = state.tables, jobs.i
    to_columns(jobs.f, i, qs.lane[Lane.WHY], float(state.SF[Amount.CREDIT]), t.F, t.I)
    state.lists.number[:] = number
    if number[RowCount.ACTIVE] == 0:
        return
    for row in np.flatnonzero(t.I[Job.PHASE] == RUNNING).tolist():
        _write_devices(state, ds, row, int(i[row, Record.SEGMENT]))
    active = np.flatnonzero((t.I[Job.PHASE] == RUNNING) | (t.I[Job.PHASE] == PENDING))
    state.lists.active[: len(active)] = active
    state.rebuild()


def _write_devices(state: State, ds: Devices, row: int, link: int) -> None:
    """The chain of a gang that still runs, as the tables have it."""
    t, last = state.tables, -1
    while link >= 0:
        node, mask = int(ds.chain[link, ChainLink.NODE]), int(ds.chain[link, ChainLink.MASK])
        t.NI[Node.FREE, node] -= ds.chain[link, ChainLink.HELD]
        for bit in range(MOST_DEVICES):
            if mask >> bit & 1:
                device = int(t.NI[Node.FIRST, node]) + bit
                t.D[Device.HOLDER, device] = row
                t.D[Device.NEXT, device] = -1
                if last < 0:
                    t.I[Job.HEAD, row] = device
                else:
                    t.D[Device.NEXT, last] = device
                last = device
        link = int(ds.chain[link, ChainLink.NEXT])
