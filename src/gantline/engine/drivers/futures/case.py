"""From a snapshot to a `FutureCase`, where counting devices is enough; None where it is not."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.insiders import tables_behind
from gantline.core.phases import RESIZING, RUNNING, STARTING
from gantline.core.plan import Misfit
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.engine import declared_key as k
from gantline.engine.assembly.rules import RunRules
from gantline.engine.commit.speeds import asks_about_gangs
from gantline.engine.declared_key import LinearKey
from gantline.engine.drivers.futures import places as p
from gantline.engine.drivers.futures.keys import rank_waiting
from gantline.engine.drivers.futures.places import FutureCase, FutureRoom

LEAST = 1e-6  # work that is left of a job that must have had all of it: it has not been seen to end


class FutureBounds(NamedTuple):
    """Where futures end, what they let in, and which jobs (by position in the snapshot) are held back at the instant."""

    until: float = math.inf
    load_limit: float = math.inf  # GPUs at which admission stops
    held: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()  # devices that newcomers ask for


def counts_devices(snapshot: Snapshot, rules: RunRules, policy: OrderPolicy, key: LinearKey, sizes: Ints) -> bool:
    """Whether a gang fits wherever enough devices are free, runs there as fast as anywhere else, and no cost depends on which it gets."""
    t, rows = tables_behind(snapshot), snapshot.jobs.rows
    regime, facts, OI, OF, F, I = rules.regime, rules.facts, t.options.I, t.options.F, t.F, t.I
    if key.promises or not rules.placement.counts or rules.placement.picks or facts.latency:
        return False
    if regime.ties_keep_order or regime.tick or t.granted or snapshot.reservations or snapshot.memory is not None or t.cordoned:
        return False
    if any(queue.bounded for queue in t.queue_tree.values()) or asks_about_gangs(t.performance):
        return False
    option, kind = I[c.OPTION_FIRST, rows], t.NI[c.N_TYPE]
    runs = rows[_runs(t, rows)]
    one_way = (
        (I[c.OPTION_COUNT, rows] == 1).all()
        and not I[c.LOCKED, rows].any()
        and (OI[c.O_GPUS, option] > 0).all()
        and (I[c.GPUS, rows] == OI[c.O_GPUS, option]).all()
        and not (OI[c.O_NODES, option].any() or OF[c.O_CPUS : c.O_CPUS + c.BESIDE, option].any())
        and ((OF[c.O_RATE, option] == OF[c.O_RATE_SPREAD, option]) | (OI[c.O_GPUS, option] == 1)).all()
        and (OF[c.O_RATE, option] > 0.0).all()
    )
    one_type = (kind == kind[0]).all() and (OI[c.O_TYPE, option] == kind[0]).all() and (t.NI[c.N_UP] == 1).all()
    steady = (
        (I[c.HELD, runs] == I[c.GPUS, runs]).all()
        and (F[c.RATE, runs] > 0.0).all()
        and (F[[c.UNTIL, c.SPEED_UNTIL, c.LIMIT_END]][:, runs] == np.inf).all()
        and np.isfinite(F[[c.ESTIMATE, c.DONE, c.PRIORITY, c.ARRIVAL]][:, rows]).all()
    )
    costs = facts.costs
    free = not (costs.start or costs.resume or costs.move or facts.min_run)
    stops = policy.preempt or regime.strict
    return bool(one_way and one_type and steady and (free or not stops or len(np.unique(sizes)) <= 1))


def case_of(
    snapshot: Snapshot, rules: RunRules, policy: OrderPolicy, key: LinearKey, numbers: Floats | None, bounds: FutureBounds
) -> FutureCase | None:
    """The instant under a key that is a sum; `numbers` stand in place of the priorities, if it needs any."""
    t, rows, regime, now = tables_behind(snapshot), snapshot.jobs.rows, rules.regime, snapshot.now
    F, I = t.F, t.I
    need = I[c.GPUS, rows]
    asked = np.concatenate([need, np.array(bounds.sizes, dtype=np.int64)])
    unknown = numbers is not None and bounds.sizes  # the numbers of newcomers
    if not len(rows) or unknown or not counts_devices(snapshot, rules, policy, key, asked):
        return None
    runs = _runs(t, rows)
    f = np.zeros((p.ROW_NUMBERS, len(rows)))
    f[p.WORK] = F[c.DONE, rows] + np.where(runs, F[c.RATE, rows] * np.maximum(0.0, now - F[c.SINCE, rows]), 0.0) + LEAST
    f[p.ESTIMATE], f[p.DONE], f[p.ARRIVAL] = F[c.ESTIMATE, rows], F[c.DONE, rows], F[c.ARRIVAL, rows]
    f[p.SERVICE], f[p.GPUTIME], f[p.FIRST] = F[c.SERVICE, rows], F[c.GPUTIME, rows], F[c.FIRST_START, rows]
    f[p.PRIORITY] = F[c.PRIORITY, rows] if numbers is None else numbers
    size = np.unique(asked)
    running = np.flatnonzero(runs)
    held = np.array(bounds.held, dtype=np.int64)
    in_order = regime.strict or policy.misfit == Misfit.STOP
    sinks = not (key.rises or key.thresholds or key.first_start)
    switch = [
        policy.preempt or regime.strict,
        in_order,
        regime.keep_evictions,
        regime.finish_at_boundary,
        key.rises,
        t.NI[c.N_GPUS].sum(),
        sinks,
    ]
    case = FutureCase(
        f,
        np.array([need, np.searchsorted(size, need)]),
        np.ascontiguousarray(F[[c.SINCE, c.RATE, c.LAST_START]][:, rows[running]]),
        running,
        held,
        np.ascontiguousarray(t.options.F[c.O_RATE, I[c.OPTION_FIRST, rows]]),
        size,
        _costs(rules, size),
        np.zeros((len(size), len(rows) + 1), dtype=np.int64),
        np.zeros(len(size), dtype=np.int64),
        k.coefficients(key),
        np.array(key.thresholds, dtype=np.float64),
        np.array([now, regime.round, regime.quantum, bounds.until, bounds.load_limit, rules.facts.min_run]),
        np.array(switch, dtype=np.int64),
    )
    _queue(case, np.setdiff1d(np.arange(len(rows)), np.concatenate([running, held])))
    return case


def _runs(t: Tables, rows: Ints) -> Bools:
    """Which rows hold devices; orders in flight count as carried out."""
    return np.isin(t.I[c.PHASE, rows], (STARTING, RUNNING, RESIZING))


def _costs(rules: RunRules, size: Ints) -> Floats:
    """Seconds before a gang of each size makes progress: at its first start, and after a stop."""
    costs, grows = rules.facts.costs, np.log2(np.maximum(size, 1))
    return np.array([cost + costs.doubling * grows if cost > 0.0 else np.zeros(len(size)) for cost in (costs.start, costs.resume)])


def _queue(case: FutureCase, waiting: Ints) -> None:
    """Those that wait stand in order, each in its lane."""
    rank_waiting(case, waiting)
    order = waiting[np.lexsort((waiting, case.f[p.KEY, waiting]))]
    for lane in range(len(case.size)):
        here = order[case.i[p.LANE, order] == lane]
        case.queue[lane, : len(here)] = here
        case.waits[lane] = len(here)


def room_for(case: FutureCase, newcomers: int) -> FutureRoom:
    """Memory for one future with so many newcomers at most."""
    numbers, wholes = p.room_shapes(case, newcomers)
    i, si, queue, lane, low, trial = (np.zeros(shape, dtype=np.int64) for shape in wholes)
    f, s = (np.zeros(shape) for shape in numbers)
    return FutureRoom(f, i, s, si, queue, lane, low, trial, np.zeros(p.COUNTERS, dtype=np.int64), np.zeros(p.TIMES))
