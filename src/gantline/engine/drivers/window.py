"""The loop on records over a window of jobs: jobs that wait or run, and the next block of those to come.

Rows that have ended leave the window between two blocks, and what is left keeps its order. Ties are broken by that order, so the window
decides as the whole table would: a test holds the logs of both against each other.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Job, Node
from gantline.core.options import OptionTable
from gantline.core.phases import COMPLETED
from gantline.core.tables import Tables
from gantline.engine.declared_key import LinearKey, coefficients
from gantline.engine.dense.backfill import forecast
from gantline.engine.dense.devices import devices
from gantline.engine.dense.gangs import LoopSetting, to_lines
from gantline.engine.dense.heap import HEAPS, Heaps, heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Pass, PassCount, PassLine
from gantline.engine.dense.queues import Lane, Lanes, queues
from gantline.engine.dense.records import Record, Records
from gantline.engine.drivers.loop_clock import LoopTime, Outcome, clock, count_in
from gantline.engine.drivers.record_loop import NUMBERS, OnRecords, blank, motion_of, run_records
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.lists import RowCount
from gantline.engine.log import Interval, Log, LogSize


class Kept(Protocol):
    """Receives the lines that leave the window."""

    def begun(self, row: Any, reason: Any, offset: Any, count: Any, node: Any, time: Any, devices: Any) -> None:
        """Intervals that have begun, in order, with their devices."""

    def closed(self, intervals: Any, end: Any, reason: Any) -> None:
        """Intervals reported earlier have ended."""

    def left(self, rows: Any, jobs: Records) -> None:
        """Jobs that are not needed any more, as their records say."""


class JobWindow:
    """One run of a key that is a sum, block after block."""

    def __init__(self, simulation: Simulation, key: LinearKey, kept: Kept) -> None:
        state, NI = simulation.state, simulation.state.tables.NI
        gpus = int(NI[Node.GPUS].sum())
        self.simulation, self.kept = simulation, kept
        self.clock = clock(state.regime, simulation.bounds)
        self.declared = key
        self.key = Key(coefficients(key), np.array(key.thresholds, dtype=np.float64))
        self.work = Pass(
            np.zeros((len(PassLine), gpus + 1), dtype=np.int64), np.zeros(len(PassCount), dtype=np.int64), motion_of(state, key)
        )
        self.plan = forecast(0.0, 0, gpus, False)
        self.ds, self.number = devices(NI, state.rule.one_node), np.zeros(NUMBERS, dtype=np.int64)
        self.rows: Ints = np.zeros(0, dtype=np.int64)  # what each line of the window is called in the whole run
        self.jobs = blank(0)
        self.heaps = heaps(self.jobs)
        self.queues, _ = queues(np.zeros(0, dtype=np.int64))
        self.room = 2 * gpus + 65536
        self.log = Log(4 * self.room, 4 * self.room)
        self.open: Ints = np.zeros(0, dtype=np.int64)  # the numbers of intervals that the log holds because they have not ended
        self.reported = [0, 0]  # intervals and devices that have been reported
        self._arrived = 0

    def run(self, block: Tables, until: float) -> None:
        """Let the jobs of a block in, and run as long as no other job matters: to just before `until`, when the next block begins."""
        self._take(block)
        self.clock.time[LoopTime.UNTIL] = np.nextafter(until, -np.inf)
        rates = OptionTable.blank(len(self.rows))
        rates.rate[:] = rates.rate_spread[:] = 1.0
        setting, code = LoopSetting(self.simulation.state.SI, self.simulation.state.SF, rates.F), Outcome.NEED_LOG
        while code == Outcome.NEED_LOG:
            log = self.log
            log.reserve(self.room, self.room)
            on = OnRecords(self.jobs, self.heaps, self.queues, self.ds, log.columns, setting, self.key, self.work, self.plan)
            code = run_records(on, self.number, self.clock)
            self._tell_log()
        gone = self.jobs.i[:, Record.STATE] == COMPLETED
        self.kept.left(self.rows[gone], Records(self.jobs.f[gone], self.jobs.i[gone]))
        self._let_go(gone)
        if self.simulation.on_progress is not None:
            self.simulation.on_progress(float(self.clock.time[LoopTime.NOW]), self._arrived, int(self.number[RowCount.ACTIVE]))

    def end(self) -> None:
        """No job is to come: report which are left, and what the run came to."""
        assert not len(self.open), "every gang that runs has an end"
        self.kept.left(self.rows, self.jobs)
        count_in(self.simulation.engine, self.clock)

    def _take(self, block: Tables) -> None:
        """Put the rows of a block behind those that are here."""
        old, fresh = len(self.rows), block.F.shape[1]
        jobs = blank(old + fresh)
        jobs.f[:old], jobs.i[:old] = self.jobs.f, self.jobs.i
        needs = np.concatenate([self.jobs.i[:, Record.NEED].astype(np.int64), block.I[Job.GPUS]])
        lanes, lane_of = queues(needs)
        to_lines(block.F, block.I, lane_of[old:], jobs.f[old:], jobs.i[old:])
        jobs.i[:, Record.LANE], jobs.i[:, Record.OPTION] = lane_of, np.arange(old + fresh)
        _move_queues(self.queues, lanes)
        self.queues, self.heaps, self.jobs = lanes, _moved_heaps(self.heaps, np.arange(old), jobs), jobs
        self.rows = np.concatenate([self.rows, self._arrived + np.arange(fresh)])
        self._arrived += fresh

    def _let_go(self, gone: Bools) -> None:
        """Only jobs that are not gone stay, in the same order."""
        stay = ~gone
        place = np.cumsum(stay) - 1
        self.number[RowCount.HELD] = np.count_nonzero(stay[: self.number[RowCount.HELD]])
        self.number[RowCount.NEXT] = np.count_nonzero(stay[: self.number[RowCount.NEXT]])
        for lane in range(self.queues.lane.shape[1]):
            at = _ring(self.queues, lane)
            self.queues.row[at] = place[self.queues.row[at]]
        held = self.log.LI[Interval.ROW, : len(self.open)]
        held[:] = place[held]
        self.jobs, self.rows = Records(self.jobs.f[stay], self.jobs.i[stay]), self.rows[stay]
        self.heaps = _moved_heaps(self.heaps, place, self.jobs)

    def _tell_log(self) -> None:
        """Report the new intervals of the log; only those that have not ended stay in it."""
        log, held = self.log, len(self.open)
        n, d = int(log.LN[LogSize.INTERVALS]), int(log.LN[LogSize.DEVICES])
        LI, LF = log.LI[:, :n], log.LF[:, :n]
        ended = ~np.isnan(LF[Interval.END])
        self.kept.closed(self.open[ended[:held]], LF[Interval.END, :held][ended[:held]], LI[Interval.REASON, :held][ended[:held]])
        new = LI[:, held:]
        offset = new[Interval.OFFSET].astype(np.int64) + self.reported[1]
        self.kept.begun(
            self.rows[new[Interval.ROW]], new[Interval.REASON], offset, new[Interval.COUNT], new[Interval.NODE], LF[:, held:], log.LD[:d]
        )
        numbers = np.concatenate([self.open, self.reported[0] + np.arange(n - held)])[~ended]
        self.reported[0] += n - held
        self.reported[1] += d
        stay = np.flatnonzero(~ended)
        self.jobs.i[LI[Interval.ROW, stay], Record.INTERVAL] = np.arange(len(stay))
        log.LI[:, : len(stay)], log.LF[:, : len(stay)] = LI[:, stay], LF[:, stay]
        log.LN[LogSize.INTERVALS], log.LN[LogSize.DEVICES], self.open = len(stay), 0, numbers


def _moved_heaps(old: Heaps, place: NDArray[np.int64], jobs: Records) -> Heaps:
    """The same heaps over rows that are called otherwise; a heap does not look at its rows, so that each stays where it was in it."""
    new = heaps(jobs)
    new.size[:] = old.size
    for which in range(HEAPS):  # the scratch is empty between two passes
        size = int(old.size[which])
        new.key[which, :size] = old.key[which, :size]
        new.row[which, :size] = place[old.row[which, :size]]
    return new


def _ring(queues: Lanes, lane: int) -> Ints:
    """The places of a lane's rows, the first one first."""
    base, mask, head, count = (queues.lane[what, lane] for what in (Lane.BASE, Lane.MASK, Lane.HEAD, Lane.COUNT))
    return np.asarray(base + ((head + np.arange(count)) & mask))


def _move_queues(old: Lanes, new: Lanes) -> None:
    """Jobs that wait, into other lanes of the same sizes."""
    lane_of = {int(size): lane for lane, size in enumerate(new.lane[Lane.SIZE])}
    new.waiting[:] = old.waiting
    for lane, size in enumerate(old.lane[Lane.SIZE].tolist()):
        count = int(old.lane[Lane.COUNT, lane])
        if size in lane_of:
            other = lane_of[size]
            at = _ring(old, lane)
            first = int(new.lane[Lane.BASE, other])
            new.key[first : first + count], new.row[first : first + count] = old.key[at], old.row[at]
            new.lane[Lane.COUNT, other], new.lane[Lane.WHY, other], new.first[other] = count, old.lane[Lane.WHY, lane], old.first[lane]
