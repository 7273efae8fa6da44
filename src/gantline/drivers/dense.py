"""Running a declared key on records: from the tables to the records, and back when the loop ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.policy import LinearKey
from gantline.core.reasons import Reason
from gantline.drivers import loop_clock as lc
from gantline.drivers.dense_loop import run_dense
from gantline.engine import declared_key as k
from gantline.engine import settings as s
from gantline.engine.dense import devices as d
from gantline.engine.dense import low_ranks as w
from gantline.engine.dense import queues as q
from gantline.engine.dense import records as r
from gantline.engine.dense.backfill import forecast
from gantline.engine.dense.devices import Devices, devices
from gantline.engine.dense.gangs import Log, Setting
from gantline.engine.dense.heap import DUE, Heaps, heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Pass
from gantline.engine.dense.queues import Queues, queues
from gantline.engine.dense.records import Records
from gantline.engine.lists import ACTIVE as B_ACTIVE
from gantline.engine.lists import COUNTS as B_COUNT
from gantline.engine.lists import NEXT as B_NEXT
from gantline.engine.state import State
from gantline.placement.fit import CONSOLIDATED, FIRST_FREE

if TYPE_CHECKING:
    from gantline.drivers.virtual import Simulation


#: columns of the tables in the order in which a record has them
_TAKEN = [column for _, column in sorted(r.SAME)]


def _blocks(rows: int, size: int = 1024) -> list[slice]:
    """Rows in blocks that stay in the cache while columns become lines, or lines columns."""
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


def fits_dense(state: State) -> bool:
    """Whether records can say all of this run: one way to run per job, one device type, nothing but devices, a placement that they know."""
    t, SI = state.tables, state.SI
    OI, OF, I = t.options.I, t.options.F, t.I
    return bool(
        SI[s.S_RULE] in (FIRST_FREE, CONSOLIDATED)
        and not SI[s.S_KEEP_EVICTIONS]
        and I.shape[1] > 0
        and not state.lists.number.any()
        and (I[c.OPTION_COUNT] == 1).all()
        and not I[c.LOCKED].any()
        and not I[c.PHASE].any()
        and (OI[c.O_GPUS] > 0).all()
        and not OI[c.O_NODES].any()
        and not OF[c.O_CPUS].any()
        and not OF[c.O_MEMORY].any()
        and (t.NI[c.N_TYPE] == t.NI[c.N_TYPE, 0]).all()
        and (OI[c.O_TYPE] == t.NI[c.N_TYPE, 0]).all()
        and (t.NI[c.N_UP] == 1).all()
        and t.NI[c.N_GPUS].max() <= d.MOST
        and (I[c.GPUS] == OI[c.O_GPUS, I[c.OPTION_FIRST]]).all()
    )


def knows(state: State, key: LinearKey) -> bool:
    """Whether a compiled loop can run this key here; backfilling is known on records only, and at the speed that was asked for."""
    if not key.promises:
        return True
    OF = state.tables.options.F
    return fits_dense(state) and bool((OF[c.O_RATE] == 1.0).all() and (OF[c.O_RATE_SPREAD] == 1.0).all())


def run_on_records(simulation: Simulation, key: LinearKey) -> bool:
    """Run to the end without calling back, but to make room in the log; whether the bound in time cut it short."""
    state, engine = simulation.state, simulation.engine
    t, log = state.tables, state.log
    T, C = lc.clock(simulation)
    qs, lane_of = queues(t.I[c.GPUS], key.promises > 0.0)
    jobs = _records(state, lane_of)
    ds = devices(t.NI)
    width = min(int(t.NI[c.N_GPUS].sum()), jobs.f.shape[0]) + 1
    setting = Setting(state.SI, state.SF, t.options.F)
    declared = Key(k.coefficients(key), np.array(key.thresholds, dtype=np.float64))
    work = Pass(np.zeros((w.LINE_ROWS, width), dtype=np.int64), np.zeros(w.NUMBERS, dtype=np.int64), _motion(state, key))
    plan = forecast(key.promises, jobs.f.shape[0], int(t.NI[c.N_GPUS].sum()), _as_planned(state, key))
    h, B = heaps(jobs.f.shape[0]), np.zeros(B_COUNT + 1, dtype=np.int64)
    code = lc.NEED_LOG
    while code == lc.NEED_LOG:
        log.reserve(2 * width + 65536, 2 * width + 65536)
        code = run_dense(jobs, h, qs, ds, Log(log.LI, log.LF, log.LD, log.LN), setting, declared, work, plan, B, T, C)
        if simulation.on_progress is not None:
            simulation.on_progress(float(T[lc.T_NOW]), int(B[B_NEXT]), int(B[B_ACTIVE]))
    _write_back(state, jobs, h, qs, ds, B[:B_COUNT])
    state.now = float(T[lc.T_NOW])
    engine.decisions += int(C[lc.C_DECISIONS])
    engine.started += int(work.number[w.STARTED])
    engine.stopped += int(work.number[w.STOPPED])
    return code == lc.CUT


def _as_planned(state: State, key: LinearKey) -> bool:
    """Whether every gang starts and ends in the very second that conservative backfilling plans for it, in order of arrival.

    Whole seconds only: their sums are exact, so that a plan made anew could not differ in the last digit.
    """
    if key.promises <= 1.0:
        return False
    F, SF = state.tables.F, state.SF
    by_arrival = key == LinearKey(arrival=key.arrival, promises=key.promises) and key.arrival > 0
    undisturbed = state.SI[s.S_RULE] == FIRST_FREE and not state.regime.round and not state.regime.finish_at_boundary
    free = not (SF[s.S_START] or SF[s.S_RESUME] or SF[s.S_MOVE])
    known = bool((F[c.ESTIMATE] == F[c.WORK]).all() and (F[c.WORK] >= 1.0).all() and F[c.ARRIVAL].min() >= 0.0)
    whole = bool((F[c.WORK] % 1.0 == 0.0).all() and (F[c.ARRIVAL] % 1.0 == 0.0).all() and F[c.WORK].sum() < 2.0**52)
    return bool(by_arrival and undisturbed and free and known and whole)


def _motion(state: State, key: LinearKey) -> np.ndarray:
    """How keys of those who run move: all alike, so that their order stays, or each in its own way."""
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
    rises = key.attained > 0 or key.attained_gpu > 0 or key.remaining < 0 or key.remaining_gpu < 0
    return np.array([rise if alike else 0.0, float(not alike), float(rises)])


def _records(state: State, lane_of: Ints) -> Records:
    """The lines of all rows."""
    F, I = state.tables.F, state.tables.I
    rows = F.shape[1]
    f, i = np.empty((rows, r.F_COUNT)), np.zeros((rows, r.I_COUNT), dtype=np.int32)
    for block in _blocks(rows):
        f[block, : len(_TAKEN)] = F[_TAKEN, block].T
    i[:, r.NEED], i[:, r.LANE], i[:, r.OPTION] = I[c.GPUS], lane_of, I[c.OPTION_FIRST]
    i[:, r.SEGMENT] = i[:, r.INTERVAL] = -1
    return Records(f, i)


def _write_back(state: State, jobs: Records, h: Heaps, qs: Queues, ds: Devices, B: Ints) -> None:
    """Everything that the loop has found out, into the columns."""
    t = state.tables
    F, I, f, i = t.F, t.I, jobs.f, jobs.i
    for block in _blocks(F.shape[1]):
        F[_TAKEN, block] = f[block, : len(_TAKEN)].T
    state_now, starts = i[:, r.STATE], i[:, r.STARTS]
    begun, runs, ended = starts > 0, state_now == RUNNING, state_now == COMPLETED
    F[c.SAFE] = np.where(ended, F[c.WORK], F[c.DONE])
    I[c.PHASE], I[c.PREEMPTIONS], I[c.EPOCH] = state_now, i[:, r.STOPS], I[c.EPOCH] + starts
    I[c.RESTARTS] += np.maximum(starts - 1, 0)
    I[c.INTERVAL], I[c.SPREAD] = i[:, r.INTERVAL], i[:, r.SPREAD]
    I[c.HELD] = np.where(runs, i[:, r.NEED], 0)
    I[c.OPTION] = np.where(runs, i[:, r.OPTION], -1)
    I[c.REASON] = _reasons(i, qs)
    on = h.size[DUE]
    F[c.DUE, h.row[DUE, :on]] = h.key[DUE, :on]
    F[c.MARK] = np.where(begun, F[c.FIRST_START] + state.SF[s.S_CREDIT], F[c.MARK])
    for row in np.flatnonzero(runs).tolist():
        _write_devices(state, ds, row, int(i[row, r.SEGMENT]))
    state.lists.number[:] = B
    active = np.flatnonzero(runs | (state_now == PENDING))
    state.lists.active[: len(active)] = active
    state.rebuild()


def _reasons(i: np.ndarray, qs: Queues) -> np.ndarray:
    """Why each row waits: what was found for it, or for the one in front of it that asks for as much."""
    of_lane = qs.lane[q.WHY][i[:, r.LANE]]
    untried = (i[:, r.STATE] == PENDING) & (i[:, r.WHY] == int(Reason.ARRIVED)) & (of_lane != 0)
    return np.where(untried, of_lane, i[:, r.WHY])


def _write_devices(state: State, ds: Devices, row: int, link: int) -> None:
    """The chain of a gang that still runs, as the tables have it."""
    t, last = state.tables, -1
    while link >= 0:
        node, mask = int(ds.chain[d.NODE, link]), int(ds.chain[d.MASK, link])
        t.NI[c.N_FREE, node] -= ds.chain[d.HELD, link]
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
        link = int(ds.chain[d.NEXT, link])
