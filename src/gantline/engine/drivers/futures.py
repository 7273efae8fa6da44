"""Many futures of one instant: its jobs are written to records once, and the loop on records takes a copy of them to the end of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Device, Job, Node
from gantline.core.constants import Constants
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.options import OptionTable
from gantline.core.phases import HELD_BACK, PENDING, RUNNING
from gantline.engine.declared_key import LinearKey
from gantline.engine.dense.backfill import INSTANT, forecast
from gantline.engine.dense.devices import ChainLink, Devices, Total, devices, reclaim
from gantline.engine.dense.gangs import LoopSetting, set_due, to_lines
from gantline.engine.dense.heap import HEAPS, LEVEL, RANK, Heaps, heaps, put
from gantline.engine.dense.low_ranks import Motion, rank_key
from gantline.engine.dense.queues import enter, queues
from gantline.engine.dense.records import Record, Records, key_of, next_level
from gantline.engine.drivers.record_loop import DEMAND, INPUTS, NUMBERS, OnRecords, blank_records, finish, key_and_pass, run_records
from gantline.engine.drivers.six_steps import LoopBounds, LoopCount, LoopTime, Outcome, clock_of
from gantline.engine.lists import RowCount
from gantline.engine.log import Interval, Log, LogSize
from gantline.engine.settings import Switch
from gantline.engine.state import State

LEAST = 1e-6  # work that is left of a job that must have had all of it: it has not been seen to end
MOST_DECISIONS = 2_000_000  # a future that takes more goes nowhere


class Newcomer(Constants):
    """What is known of newcomers, in order of arrival: lines of an array with a column for each of them."""

    ARRIVAL, WORK, ESTIMATE, PRIORITY, NEED = range(5)


_AS_RECORDED = [Record.ARRIVAL, Record.WORK, Record.ESTIMATE, Record.PRIORITY]


@dataclass(frozen=True)
class Rolled:
    """What became of each job, by position in the snapshot; infinity: not within the horizon."""

    start: Floats  # when it next holds devices; now, for jobs that hold some
    finish: Floats
    decisions: int
    incidents: tuple[str, ...] = ()
    dollars: float = math.nan  # that devices cost from now on, where that was asked for and they have prices
    kwh: float = math.nan


def runs_steadily(state: State, rows: Ints) -> bool:
    """Whether every row that runs holds what it asked for, at a speed and under terms that only its end changes."""
    F, I = state.tables.F, state.tables.I
    runs = rows[I[Job.PHASE, rows] == RUNNING]
    return bool(
        np.isin(I[Job.PHASE, rows], (RUNNING, PENDING, HELD_BACK)).all()
        and (I[Job.HELD, runs] == I[Job.GPUS, runs]).all()
        and (F[Job.RATE, runs] > 0.0).all()
        and (F[[Job.UNTIL, Job.SPEED_UNTIL, Job.LIMIT_END]][:, runs] == np.inf).all()
        and np.isfinite(F[[Job.ESTIMATE, Job.DONE, Job.PRIORITY, Job.ARRIVAL]][:, rows]).all()
    )


@kernel
def _begin(on: OnRecords, number: Ints, now: float) -> None:
    """Jobs that run take their devices and their places in the ranks, those that wait their places in line."""
    jobs, key = on.jobs, on.key
    for row in range(number[RowCount.HELD]):
        if jobs.i[row, Record.STATE] == RUNNING:
            reclaim(on.ds, jobs.i[row, Record.SEGMENT])
            put(on.h, RANK, row, rank_key(jobs, row, key, on.work, now))
            put(on.h, LEVEL, row, next_level(jobs, row, key, now))
        else:
            jobs.f[row, Record.KEY] = key_of(jobs, row, key, 0.0)
            enter(on.qs, jobs.i[row, Record.LANE], jobs.f[row, Record.KEY], row, max(jobs.f[row, Record.ESTIMATE], INSTANT))


@kernel
def _set_all_due(jobs: Records, h: Heaps) -> None:
    """When those that run are done depends on the work of this future."""
    for place in range(h.size[RANK]):
        set_due(jobs, h, h.row[RANK, place])


class RecordFutures:
    """An instant on records; `state` is at it, with the order of its policy."""

    def __init__(self, state: State, rows: Ints, key: LinearKey, bounds: LoopBounds, held: int, newcomers: Sequence[Floats]) -> None:
        """The `rows` of the snapshot, of which the last `held` are not let in yet; `newcomers` are those of every future."""
        t, now = state.tables, state.now
        self.state, self._jobs, self._log, self._clock = state, len(rows), Log(), clock_of(state.regime, bounds)
        self._clock.time[LoopTime.NOW] = self._clock.time[LoopTime.WAKE] = now
        self._clock.number[LoopCount.TRACK_HIGH] = len(rows)
        needs, more = t.I[Job.GPUS, rows], max((each.shape[1] for each in newcomers), default=0)
        asked = np.unique(np.concatenate([each[Newcomer.NEED].astype(np.int64) for each in newcomers])) if more else needs[:0]
        qs, lane_of = queues(np.concatenate([needs, np.repeat(asked, more)]))
        self._lane_of = dict(zip(np.concatenate([needs, np.repeat(asked, more)]).tolist(), lane_of.tolist()))
        jobs, ds, count = blank_records(len(rows) + more), devices(t.NI, state.rule.one_node), len(rows)
        f, i = jobs.f, jobs.i
        to_lines(t.F[:, rows], t.I[:, rows], lane_of[:count], f[:count], i[:count])
        f[count:, [Record.FIRST_START, Record.FINISH]] = np.nan
        i[count:, [Record.SEGMENT, Record.INTERVAL, *range(Record.AT, Record.AT + HEAPS)]] = -1
        i[:, Record.OPTION] = np.arange(count + more)
        self._runs: Bools = t.I[Job.PHASE, rows] == RUNNING
        runs = np.flatnonzero(self._runs)
        for number, column in ((Record.SINCE, Job.SINCE), (Record.RATE, Job.RATE), (Record.LAST_START, Job.LAST_START)):
            f[runs, number] = t.F[column, rows[runs]]
        f[:count, Record.FIRST_START] = t.F[Job.FIRST_START, rows]
        i[:count, Record.STARTS] = ~np.isnan(f[:count, Record.FIRST_START])
        i[:count, Record.STATE] = np.where(self._runs, RUNNING, PENDING)
        i[count - held : count, Record.STATE] = HELD_BACK
        for row in runs.tolist():
            i[row, Record.SEGMENT] = _chain(state, ds, rows[row])
        self._least = f[:count, Record.DONE] + f[:count, Record.RATE] * np.maximum(0.0, now - f[:count, Record.SINCE]) + LEAST
        rates = OptionTable.blank(count + more).F
        rates[:] = 1.0
        rates[:, :count] = t.options.F[:, t.I[Job.OPTION_FIRST, rows]]
        width = min(int(t.NI[Node.GPUS].sum()), count + more) + 1
        declared, work = key_and_pass(state, key, width)
        if key.moves and ((f[runs, Record.RATE] != 1.0) | (f[runs, Record.SINCE] > now)).any():  # their keys move differently
            work.motion[Motion.RISE], work.motion[Motion.ANEW] = 0.0, 1.0
        work.motion[Motion.WHOLE] = 0.0
        setting = LoopSetting(state.SI, state.SF, rates)
        plan = forecast(0.0, 0, width - 1, False)
        self._room = 2 * width + 65536
        self._log.reserve(self._room, self._room)
        self._on = OnRecords(jobs, heaps(jobs), qs, ds, self._log.columns, setting, declared, work, plan)
        self._number = np.zeros(NUMBERS, dtype=np.int64)
        self._number[RowCount.NEXT], self._number[RowCount.HELD], self._number[INPUTS] = count, count - held, count + more
        self._number[RowCount.ACTIVE], self._number[DEMAND] = count - held, needs[: count - held].sum()
        _begin(self._on, self._number, now)
        self._used: list[np.ndarray] = [*jobs, *self._on.h, *qs, *ds, work.number, self._number, self._log.LN, *self._clock]
        self._kept = [array.copy() for array in self._used]

    def roll(self, work: Floats, newcomers: Floats) -> Rolled | None:
        """One future, in which the jobs have that much work; None: it decides again and again without getting anywhere."""
        for used, kept in zip(self._used, self._kept):
            used[...] = kept
        on, number, clock, now, count = self._on, self._number, self._clock, self.state.now, self._jobs
        last, boundary = count + newcomers.shape[1], bool(self.state.SI[Switch.BOUNDARY])
        on.jobs.f[:count, Record.WORK] = np.maximum(work, self._least)
        on.jobs.f[count:last, _AS_RECORDED] = newcomers[: len(_AS_RECORDED)].T
        on.jobs.f[last:, Record.ARRIVAL] = np.inf
        on.jobs.i[count:last, Record.NEED] = newcomers[Newcomer.NEED]
        on.jobs.i[count:last, Record.LANE] = [self._lane_of[need] for need in newcomers[Newcomer.NEED].tolist()]
        _set_all_due(on.jobs, on.h)
        code = run_records(on, number, clock)
        while code == Outcome.NEED_LOG:
            if clock.number[LoopCount.DECISIONS] > MOST_DECISIONS:
                return None
            self._log.reserve(self._room, self._room)
            on = self._on = on._replace(log=self._log.columns)
            code = run_records(on, number, clock)
        if code == Outcome.CUT and not boundary:
            finish(on, number, float(clock.time[LoopTime.UNTIL]))
        ends, begins = on.jobs.f[:count, Record.FINISH], np.full(len(on.jobs.f), np.inf)
        began = self._log.LN[LogSize.INTERVALS]
        begins[self._log.LI[Interval.ROW, :began][::-1]] = self._log.LF[Interval.START, :began][::-1]  # the first of each row
        start = np.where(self._runs, now, begins[:count])
        return Rolled(start, np.where(np.isnan(ends), np.inf, ends), int(clock.number[LoopCount.DECISIONS]))


def _chain(state: State, ds: Devices, row: int) -> int:
    """Links that name the devices which a gang holds; returns the first."""
    D, NI, parts = state.tables.D, state.tables.NI, dict[int, int]()
    device = int(state.tables.I[Job.HEAD, row])
    while device >= 0:
        node = int(D[Device.NODE, device])
        parts[node] = parts.get(node, 0) | 1 << device - int(NI[Node.FIRST, node])
        device = int(D[Device.NEXT, device])
    first = link = int(ds.total[Total.SPARE])
    for node, mask in parts.items():
        link = int(ds.total[Total.SPARE])
        ds.chain[link, [ChainLink.NODE, ChainLink.MASK, ChainLink.HELD]] = node, mask, mask.bit_count()
        ds.total[Total.SPARE] = ds.chain[link, ChainLink.NEXT]
    ds.chain[link, ChainLink.NEXT] = -1
    ds.chain[first, [ChainLink.LINKS, ChainLink.LAST]] = len(parts), link
    return first
