"""Running a key that is a sum on records: from the tables to the records, and back when the loop ends."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import HOST_RESOURCES, Device, Job, Node, Option
from gantline.core.phases import PENDING, RUNNING
from gantline.engine.blocked import name_blocked
from gantline.engine.declared_key import LinearKey, coefficients
from gantline.engine.dense.backfill import forecast
from gantline.engine.dense.devices import MOST_DEVICES, ChainLink, Devices, devices
from gantline.engine.dense.gangs import LoopSetting, loop_log
from gantline.engine.dense.heap import heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Motion, Pass, PassCount, PassLine
from gantline.engine.dense.queues import Lane, Lanes, queues
from gantline.engine.dense.records import RECORD_FLOATS, RECORD_INTS, Record, Records
from gantline.engine.dense.transfer import to_columns, to_lines
from gantline.engine.drivers import loop_clock
from gantline.engine.drivers.declared import take_order
from gantline.engine.drivers.dense_verbs import OnRecords, run_records
from gantline.engine.drivers.loop_clock import LoopBounds, LoopTime, Outcome, count_in
from gantline.engine.drivers.standstill import Standstill
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
from gantline.engine.settings import Amount, Switch
from gantline.engine.state import State


def why_not_on_records(state: State) -> str:
    """What records cannot represent of this run; empty: they can represent all of it."""
    t, SI = state.tables, state.SI
    OI, OF, I, kind = t.options.I, t.options.F, t.I, t.NI[Node.TYPE]
    if not state.rule.on_records:
        return f"placement '{state.placement.name}' is known on the tables only"
    if SI[Switch.KEEP_EVICTIONS]:
        return f"regime '{state.regime.name}' keeps evictions that turn out useless"
    if I.shape[1] == 0:
        return "there are no jobs"
    if state.lists.number.any() or I[Job.PHASE].any():
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
    """Run to the end without calling back, but to make room in the log; how it ended (see `loop_clock`)."""
    state = engine.state
    take_order(state, engine.policy)
    t, log = state.tables, state.log
    clock = loop_clock.clock(state.regime, bounds)
    qs, lane_of = queues(t.I[Job.GPUS], key.promises > 0.0)
    jobs = records_of(state, lane_of)
    ds = devices(t.NI, state.rule.one_node)
    width = min(int(t.NI[Node.GPUS].sum()), jobs.f.shape[0]) + 1
    setting = LoopSetting(state.SI, state.SF, t.options.F)
    declared = Key(coefficients(key), np.array(key.thresholds, dtype=np.float64))
    work = Pass(np.zeros((len(PassLine), width), dtype=np.int64), np.zeros(len(PassCount), dtype=np.int64), motion(state, key))
    work.motion[Motion.WHOLE] = _whole(state, key)
    plan = forecast(key.promises, jobs.f.shape[0], int(t.NI[Node.GPUS].sum()), _as_planned(state, key))
    on = OnRecords(jobs, heaps(jobs), qs, ds, loop_log(log), setting, declared, work, plan)
    number, room = np.zeros(len(RowCount) + 1, dtype=np.int64), 2 * width + 65536
    if bounds.on_progress is None:  # it need not come back in between
        log.reserve(*_expected(state, room))
    code = Outcome.NEED_LOG
    standstill = Standstill(engine)
    while code == Outcome.NEED_LOG and not stands_still(standstill, jobs, number, float(clock.time[LoopTime.NOW])):
        log.reserve(room, room)
        code = run_records(on._replace(log=loop_log(log)), number, clock)
        if bounds.on_progress is not None:
            bounds.on_progress(float(clock.time[LoopTime.NOW]), int(number[RowCount.NEXT]), int(number[RowCount.ACTIVE]))
    state.spanned = write_back(state, jobs, qs, ds, number[: len(RowCount)])
    count_in(engine, clock)
    name_blocked(state)
    return code


def stands_still(guard: Standstill, jobs: Records, number: Ints, now: float) -> bool:
    """Whether no job on the records has worked since the last look, and none is to come."""
    attained = jobs.f[:, Record.SERVICE] + np.where(jobs.i[:, Record.STATE] == RUNNING, np.maximum(0.0, now - jobs.f[:, Record.SINCE]), 0.0)
    return guard.is_here(now, attained, to_come=bool(number[RowCount.NEXT] < len(attained)))


def _expected(state: State, room: int) -> tuple[int, int]:
    """Intervals and devices to reserve at once: all if no gang can be stopped, else many, wide gangs more often than others.

    Memory that is not written to costs nothing.
    """
    jobs, gpus = state.tables.I.shape[1], int(state.tables.I[Job.GPUS].sum())
    times = min(24.0, max(1.0, 4e6 / max(jobs, 1))) if state.SI[Switch.PREEMPT] else 1.0
    return int(jobs * times) + room, int(gpus * times * (1.0 if times == 1.0 else 4.0)) + room


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


def motion(state: State, key: LinearKey) -> np.ndarray:
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


def records_of(state: State, lane_of: Ints) -> Records:
    """The lines of all rows, each in whole cache lines."""
    F, I = state.tables.F, state.tables.I
    rows = F.shape[1]
    f, i = np.empty(rows * RECORD_FLOATS + 8), np.empty(rows * RECORD_INTS + 16, dtype=np.int32)
    jobs = Records(aligned(f, RECORD_FLOATS), aligned(i, RECORD_INTS))
    to_lines(F, I, lane_of, jobs.f, jobs.i)
    return jobs


def aligned(numbers: np.ndarray, width: int) -> np.ndarray:
    """Lines of that width out of fresh memory, the first at the beginning of a cache line."""
    skip = -numbers.ctypes.data % 64 // numbers.itemsize
    rows = (len(numbers) - 64 // numbers.itemsize) // width
    return numbers[skip : skip + rows * width].reshape(rows, width)


def write_back(state: State, jobs: Records, qs: Lanes, ds: Devices, number: Ints) -> int:
    """Write the loop's results into the columns. Returns how many jobs have held devices of several nodes at once."""
    t, i = state.tables, jobs.i
    spanned = to_columns(jobs.f, i, qs.lane[Lane.WHY], float(state.SF[Amount.CREDIT]), t.F, t.I)
    state.lists.number[:] = number
    if number[RowCount.ACTIVE] == 0:
        return spanned
    for row in np.flatnonzero(t.I[Job.PHASE] == RUNNING).tolist():
        _write_devices(state, ds, row, int(i[row, Record.SEGMENT]))
    active = np.flatnonzero((t.I[Job.PHASE] == RUNNING) | (t.I[Job.PHASE] == PENDING))
    state.lists.active[: len(active)] = active
    state.rebuild()
    return spanned


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
