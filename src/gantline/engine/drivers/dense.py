"""Running a key that is a sum on records: from the tables to the records, and back when the loop ends."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.phases import PENDING, RUNNING
from gantline.engine import declared_key as k
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.declared_key import LinearKey
from gantline.engine.dense import devices as d
from gantline.engine.dense import low_ranks as w
from gantline.engine.dense import queues as q
from gantline.engine.dense import records as r
from gantline.engine.dense.backfill import forecast
from gantline.engine.dense.devices import Devices, devices
from gantline.engine.dense.gangs import LoopSetting, loop_log
from gantline.engine.dense.heap import heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Pass
from gantline.engine.dense.queues import Lanes, queues
from gantline.engine.dense.records import Records
from gantline.engine.dense.transfer import to_columns, to_lines
from gantline.engine.drivers import loop_clock as lc
from gantline.engine.drivers.declared import take_order
from gantline.engine.drivers.dense_verbs import OnRecords, run_records
from gantline.engine.drivers.standstill import Standstill
from gantline.engine.engine import Engine
from gantline.engine.state import State
from gantline.engine.walk.ranking import name_blocked


def why_not_on_records(state: State) -> str:
    """What records cannot represent of this run; empty: they can represent all of it."""
    t, SI = state.tables, state.SI
    OI, OF, I, kind = t.options.I, t.options.F, t.I, t.NI[c.N_TYPE]
    if not state.rule.on_records:
        return f"placement '{state.placement.name}' is known on the tables only"
    if SI[s.S_KEEP_EVICTIONS]:
        return f"regime '{state.regime.name}' keeps evictions that turn out useless"
    if I.shape[1] == 0:
        return "there are no jobs"
    if state.lists.number.any() or I[c.PHASE].any():
        return "it begins in the middle of a run"
    if (kind != kind[0]).any() or (OI[c.O_TYPE] != kind[0]).any():
        return "there are several device types"
    if (I[c.OPTION_COUNT] != 1).any() or (I[c.GPUS] != I[c.SMALLEST]).any():
        return "jobs may run in several ways"
    if (OI[c.O_GPUS] <= 0).any() or OI[c.O_NODES].any():
        return "jobs ask for nodes, or for no GPU"
    if OF[c.O_CPUS : c.O_CPUS + c.BESIDE].any():
        return "jobs ask for CPUs, memory or storage"
    if I[c.LOCKED].any():
        return "jobs must keep what they have"
    if (t.NI[c.N_UP] != 1).any():
        return "nodes are down"
    if state.rule.one_node and t.NI[c.N_RACK].any():
        return "nodes stand in racks, and gangs are placed close together"
    return f"nodes have more than {d.MOST} devices" if t.NI[c.N_GPUS].max() > d.MOST else ""


def at_asked_speed(state: State) -> bool:
    """Whether every job runs at the speed that it asked for, wherever it is: else records cannot backfill."""
    OF = state.tables.options.F
    return bool((OF[c.O_RATE] == 1.0).all() and (OF[c.O_RATE_SPREAD] == 1.0).all())


def run_on_records(engine: Engine, key: LinearKey, bounds: lc.LoopBounds) -> int:
    """Run to the end without calling back, but to make room in the log; how it ended (see `loop_clock`)."""
    state = engine.state
    take_order(state, engine.policy)
    t, log = state.tables, state.log
    clock = lc.clock(state.regime, bounds)
    qs, lane_of = queues(t.I[c.GPUS], key.promises > 0.0)
    jobs = records_of(state, lane_of)
    ds = devices(t.NI, state.rule.one_node)
    width = min(int(t.NI[c.N_GPUS].sum()), jobs.f.shape[0]) + 1
    setting = LoopSetting(state.SI, state.SF, t.options.F)
    declared = Key(k.coefficients(key), np.array(key.thresholds, dtype=np.float64))
    work = Pass(np.zeros((w.LINE_ROWS, width), dtype=np.int64), np.zeros(w.NUMBERS, dtype=np.int64), motion(state, key))
    work.motion[w.WHOLE] = _whole(state, key)
    plan = forecast(key.promises, jobs.f.shape[0], int(t.NI[c.N_GPUS].sum()), _as_planned(state, key))
    on = OnRecords(jobs, heaps(jobs), qs, ds, loop_log(log), setting, declared, work, plan)
    number, room = np.zeros(ls.COUNTS + 1, dtype=np.int64), 2 * width + 65536
    if bounds.on_progress is None:  # it need not come back in between
        log.reserve(*_expected(state, room))
    code = lc.NEED_LOG
    standstill = Standstill(engine)
    while code == lc.NEED_LOG and not stands_still(standstill, jobs, number, float(clock.time[lc.NOW])):
        log.reserve(room, room)
        code = run_records(on._replace(log=loop_log(log)), number, clock)
        if bounds.on_progress is not None:
            bounds.on_progress(float(clock.time[lc.NOW]), int(number[ls.NEXT]), int(number[ls.ACTIVE]))
    state.spanned = write_back(state, jobs, qs, ds, number[: ls.COUNTS])
    lc.count_in(engine, clock)
    name_blocked(state)
    return code


def stands_still(guard: Standstill, jobs: Records, number: Ints, now: float) -> bool:
    """Whether no job on the records has worked since the last look, and none is to come."""
    attained = jobs.f[:, r.SERVICE] + np.where(jobs.i[:, r.STATE] == RUNNING, np.maximum(0.0, now - jobs.f[:, r.SINCE]), 0.0)
    return guard.is_here(now, attained, to_come=bool(number[ls.NEXT] < len(attained)))


def _expected(state: State, room: int) -> tuple[int, int]:
    """Intervals and devices to reserve at once: all if no gang can be stopped, else many, wide gangs more often than others.

    Memory that is not written to costs nothing.
    """
    jobs, gpus = state.tables.I.shape[1], int(state.tables.I[c.GPUS].sum())
    times = min(24.0, max(1.0, 4e6 / max(jobs, 1))) if state.SI[s.S_PREEMPT] else 1.0
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
    free = not (SF[s.S_START] or SF[s.S_RESUME] or SF[s.S_MOVE])
    known = bool((F[c.ESTIMATE] == F[c.WORK]).all() and (F[c.WORK] >= 1.0).all() and F[c.ARRIVAL].min() >= 0.0)
    whole = bool((F[c.WORK] % 1.0 == 0.0).all() and (F[c.ARRIVAL] % 1.0 == 0.0).all() and F[c.WORK].sum() < 2.0**52)
    return bool(by_arrival and undisturbed and free and known and whole)


def motion(state: State, key: LinearKey) -> np.ndarray:
    """How keys of jobs that run move: all alike, so that their order stays, or each differently."""
    OF, SF = state.tables.options.F, state.SF
    unit = bool((OF[c.O_RATE] == 1.0).all() and (OF[c.O_RATE_SPREAD] == 1.0).all())
    free = not (SF[s.S_START] or SF[s.S_RESUME] or SF[s.S_MOVE])
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
    if key != LinearKey(attained=1.0) or length <= 0.0 or length % 1.0 or SF[s.S_START] or SF[s.S_RESUME] or SF[s.S_MOVE]:
        return 0.0
    longest = F[c.WORK].sum() / min(OF[c.O_RATE].min(), OF[c.O_RATE_SPREAD].min())  # if one ran after the other
    end = F[c.ARRIVAL].max() + longest + (F.shape[1] + 1.0) * length
    above = float(1 << F.shape[1].bit_length())
    return above if end * above < 2.0**52 and not F[c.SERVICE].any() else 0.0


def records_of(state: State, lane_of: Ints) -> Records:
    """The lines of all rows, each in whole cache lines."""
    F, I = state.tables.F, state.tables.I
    rows = F.shape[1]
    f, i = np.empty(rows * r.F_COUNT + 8), np.empty(rows * r.I_COUNT + 16, dtype=np.int32)
    jobs = Records(aligned(f, r.F_COUNT), aligned(i, r.I_COUNT))
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
    spanned = to_columns(jobs.f, i, qs.lane[q.WHY], float(state.SF[s.S_CREDIT]), t.F, t.I)
    state.lists.number[:] = number
    if number[ls.ACTIVE] == 0:
        return spanned
    for row in np.flatnonzero(t.I[c.PHASE] == RUNNING).tolist():
        _write_devices(state, ds, row, int(i[row, r.SEGMENT]))
    active = np.flatnonzero((t.I[c.PHASE] == RUNNING) | (t.I[c.PHASE] == PENDING))
    state.lists.active[: len(active)] = active
    state.rebuild()
    return spanned


def _write_devices(state: State, ds: Devices, row: int, link: int) -> None:
    """The chain of a gang that still runs, as the tables have it."""
    t, last = state.tables, -1
    while link >= 0:
        node, mask = int(ds.chain[link, d.NODE]), int(ds.chain[link, d.MASK])
        t.NI[c.N_FREE, node] -= ds.chain[link, d.HELD]
        for bit in range(d.MOST):
            if mask >> bit & 1:
                device = int(t.NI[c.N_FIRST, node]) + bit
                t.D[c.D_HOLDER, device] = row
                t.D[c.D_NEXT, device] = -1
                if last < 0:
                    t.I[c.HEAD, row] = device
                else:
                    t.D[c.D_NEXT, last] = device
                last = device
        link = int(ds.chain[link, d.NEXT])
