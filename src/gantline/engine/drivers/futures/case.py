"""From a snapshot to a `FutureCase`, where counting devices is enough; None where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import HOST_RESOURCES, Job, Node, Option
from gantline.core.phases import RESIZING, RUNNING, STARTING
from gantline.core.plan import Misfit
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot, tables_behind
from gantline.core.tables import Tables
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.commit.speeds import asks_about_gangs
from gantline.engine.declared_key import LinearKey, coefficients
from gantline.engine.drivers.futures.keys import rank_waiting
from gantline.engine.drivers.futures.loop import run_batch
from gantline.engine.drivers.futures.places import (
    COUNTERS,
    MOST_DECISIONS,
    ROW_NUMBERS,
    FutureCase,
    FutureRoom,
    FutureRow,
    FutureTime,
    Newcomer,
    RowWhole,
    room_shapes,
)

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
    option, kind = I[Job.OPTION_FIRST, rows], t.NI[Node.TYPE]
    runs = rows[_runs(t, rows)]
    one_way = (
        (I[Job.OPTION_COUNT, rows] == 1).all()
        and not I[Job.LOCKED, rows].any()
        and (OI[Option.GPUS, option] > 0).all()
        and (I[Job.GPUS, rows] == OI[Option.GPUS, option]).all()
        and not (OI[Option.NODES, option].any() or OF[Option.CPUS : Option.CPUS + HOST_RESOURCES, option].any())
        and ((OF[Option.RATE, option] == OF[Option.RATE_SPREAD, option]) | (OI[Option.GPUS, option] == 1)).all()
        and (OF[Option.RATE, option] > 0.0).all()
    )
    one_type = (kind == kind[0]).all() and (OI[Option.TYPE, option] == kind[0]).all() and (t.NI[Node.UP] == 1).all()
    steady = (
        (I[Job.HELD, runs] == I[Job.GPUS, runs]).all()
        and (F[Job.RATE, runs] > 0.0).all()
        and (F[[Job.UNTIL, Job.SPEED_UNTIL, Job.LIMIT_END]][:, runs] == np.inf).all()
        and np.isfinite(F[[Job.ESTIMATE, Job.DONE, Job.PRIORITY, Job.ARRIVAL]][:, rows]).all()
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
    need = I[Job.GPUS, rows]
    asked = np.concatenate([need, np.array(bounds.sizes, dtype=np.int64)])
    unknown = numbers is not None and bounds.sizes  # the numbers of newcomers
    if not len(rows) or unknown or not counts_devices(snapshot, rules, policy, key, asked):
        return None
    runs = _runs(t, rows)
    f = np.zeros((ROW_NUMBERS, len(rows)))
    f[FutureRow.WORK] = F[Job.DONE, rows] + np.where(runs, F[Job.RATE, rows] * np.maximum(0.0, now - F[Job.SINCE, rows]), 0.0) + LEAST
    f[FutureRow.ESTIMATE], f[FutureRow.DONE], f[FutureRow.ARRIVAL] = F[Job.ESTIMATE, rows], F[Job.DONE, rows], F[Job.ARRIVAL, rows]
    f[FutureRow.SERVICE], f[FutureRow.GPUTIME], f[FutureRow.FIRST] = F[Job.SERVICE, rows], F[Job.GPUTIME, rows], F[Job.FIRST_START, rows]
    f[FutureRow.PRIORITY] = F[Job.PRIORITY, rows] if numbers is None else numbers
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
        t.NI[Node.GPUS].sum(),
        sinks,
    ]
    case = FutureCase(
        f,
        np.array([need, np.searchsorted(size, need)]),
        np.ascontiguousarray(F[[Job.SINCE, Job.RATE, Job.LAST_START]][:, rows[running]]),
        running,
        held,
        np.ascontiguousarray(t.options.F[Option.RATE, I[Job.OPTION_FIRST, rows]]),
        size,
        _costs(rules, size),
        np.zeros((len(size), len(rows) + 1), dtype=np.int64),
        np.zeros(len(size), dtype=np.int64),
        coefficients(key),
        np.array(key.thresholds, dtype=np.float64),
        np.array([now, regime.round, regime.quantum, bounds.until, bounds.load_limit, rules.facts.min_run]),
        np.array(switch, dtype=np.int64),
    )
    _queue(case, np.setdiff1d(np.arange(len(rows)), np.concatenate([running, held])))
    return case


def _runs(t: Tables, rows: Ints) -> Bools:
    """Which rows hold devices; orders in flight count as carried out."""
    return np.isin(t.I[Job.PHASE, rows], (STARTING, RUNNING, RESIZING))


def _costs(rules: RunRules, size: Ints) -> Floats:
    """Seconds before a gang of each size makes progress: at its first start, and after a stop."""
    costs, grows = rules.facts.costs, np.log2(np.maximum(size, 1))
    return np.array([cost + costs.doubling * grows if cost > 0.0 else np.zeros(len(size)) for cost in (costs.start, costs.resume)])


def _queue(case: FutureCase, waiting: Ints) -> None:
    """Those that wait stand in order, each in its lane."""
    rank_waiting(case, waiting)
    order = waiting[np.lexsort((waiting, case.f[FutureRow.KEY, waiting]))]
    for lane in range(len(case.size)):
        here = order[case.i[RowWhole.LANE, order] == lane]
        case.queue[lane, : len(here)] = here
        case.waits[lane] = len(here)


def room_for(case: FutureCase, newcomers: int) -> FutureRoom:
    """Memory for one future with so many newcomers at most."""
    numbers, wholes = room_shapes(case, newcomers)
    i, si, queue, lane, low, trial = (np.zeros(shape, dtype=np.int64) for shape in wholes)
    f, s = (np.zeros(shape) for shape in numbers)
    return FutureRoom(f, i, s, si, queue, lane, low, trial, np.zeros(COUNTERS, dtype=np.int64), np.zeros(len(FutureTime)))


# --- futures of one case, one for each line of work ---------------------------------------------------------------------


@dataclass(frozen=True)
class CountedFutures:
    """What becomes of the jobs in each future, by (future, job), and how many decisions each future takes."""

    start: Floats
    finish: Floats
    decisions: Floats

    @property
    def gave_up(self) -> bool:
        """Whether some future decided again and again without getting anywhere."""
        return bool((self.decisions > MOST_DECISIONS).any())


def run_counted(case: FutureCase, work: Floats, coming: Floats | None = None) -> CountedFutures:
    """Roll one future forward for each line of `work`, (future, job).

    `coming` holds the newcomers of each future, (future, what, number): see `places.COMING`.
    """
    if coming is None:
        coming = np.zeros((len(work), len(Newcomer), 0))
    found = CountedFutures(np.empty(work.shape), np.empty(work.shape), np.zeros(len(work)))
    run_batch(case, room_for(case, coming.shape[2]), work, coming, found.start, found.finish, found.decisions)
    return found
