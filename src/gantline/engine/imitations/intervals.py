"""What an original reports, in the tables and the log of a run: what became of jobs, and which job held what from when to when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.columns import Job
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.log import Interval


class DeviceCalendar:
    """Devices for imitations that count GPUs and not devices: each interval gets the lowest ones that are free. Intervals come in order."""

    def __init__(self, devices: int) -> None:
        self._free_from = [-math.inf] * devices

    def take(self, count: int, begin: float, end: float, first: int = 0, size: int | None = None) -> list[int]:
        """So many devices among `size` from `first` on (default: among all), which are taken from begin to end."""
        free_from, taken = self._free_from, list[int]()
        for device in range(first, len(free_from) if size is None else first + size):
            if len(taken) == count:
                break
            if free_from[device] <= begin:
                free_from[device] = end
                taken.append(device)
        return taken


def write_log(
    simulation: Simulation, *, row: Any, option: Any, reason: Any, begin: ArrayLike, end: ArrayLike, gpus: ArrayLike, devices: ArrayLike,
    node: Any = -1,
) -> None:  # fmt: skip
    """All intervals of a run, as columns in the order in which they begin; `devices` are those of all of them, one after the other."""
    log, sizes = simulation.state.log, np.asarray(gpus, dtype=np.int64)
    held = np.asarray(devices, dtype=np.int64)
    n, total = len(sizes), len(held)
    log.reserve(n, total)
    log.LI[Interval.ROW, :n], log.LI[Interval.OPTION, :n], log.LI[Interval.REASON, :n] = row, option, reason
    log.LI[Interval.OFFSET, :n], log.LI[Interval.COUNT, :n], log.LI[Interval.NODE, :n] = np.cumsum(sizes) - sizes, sizes, node
    log.LF[Interval.START, :n], log.LF[Interval.END, :n] = begin, end
    log.LD[:total] = held
    log.LN[:] = n, total


class HeldInterval(NamedTuple):
    """A job held these devices from begin to end."""

    row: int
    begin: float
    end: float
    devices: Sequence[int]
    reason: Reason  # why it held them no longer
    option: int = -1  # row of its option; below zero: its first


def write_intervals(simulation: Simulation, intervals: Iterable[HeldInterval]) -> None:
    """Write them as they come, which is in the order of their beginnings."""
    held = list(intervals)
    row, begin, end, devices, reason, option = zip(*held) if held else ((),) * 6
    first = simulation.state.tables.I[Job.OPTION_FIRST, np.array(row, dtype=np.int64)]
    write_log(
        simulation, row=row, option=np.where(np.array(option) < 0, first, option), reason=[int(each) for each in reason], begin=begin,
        end=end, gpus=[len(each) for each in devices], devices=[device for each in devices for device in each],
    )  # fmt: skip


def write_jobs(
    simulation: Simulation, *, service: ArrayLike, first_start: ArrayLike, finish: ArrayLike, restarts: ArrayLike,
    gpu_time: ArrayLike | None = None, done: ArrayLike = 0.0, unfinished: ArrayLike = int(Phase.PENDING),
) -> None:  # fmt: skip
    """What became of each job: times are NaN where there is none; jobs without an end have `done` a part of their work, and their phase."""
    F, I = simulation.state.tables.F, simulation.state.tables.I
    F[Job.SERVICE] = service
    F[Job.GPUTIME] = F[Job.SERVICE] * I[Job.GPUS] if gpu_time is None else gpu_time
    F[Job.FIRST_START] = F[Job.MARK] = first_start
    F[Job.FINISH] = finish
    ended = ~np.isnan(F[Job.FINISH])
    F[Job.DONE] = F[Job.SAFE] = F[Job.WORK] * np.where(ended, 1.0, done)
    I[Job.RESTARTS] = I[Job.PREEMPTIONS] = restarts
    I[Job.PHASE] = np.where(ended, int(Phase.COMPLETED), unfinished)


@dataclass(frozen=True, slots=True)
class GpuSpell:
    """A job held so many GPUs of one type from begin to end."""

    row: int
    begin: float
    end: float
    gpus: int
    reason: int


def write_spells(simulation: Simulation, spells: Sequence[GpuSpell]) -> None:
    """Write them in order of their beginnings; the cluster has one type, and never more are held than there are."""
    t = simulation.state.tables
    ordered = sorted(spells, key=lambda one: (one.begin, one.row))
    calendar = DeviceCalendar(t.D.shape[1])
    row = np.array([one.row for one in ordered], dtype=np.int64)
    write_log(
        simulation,
        row=row,
        option=t.I[Job.OPTION_FIRST][row],
        reason=[one.reason for one in ordered],
        begin=[one.begin for one in ordered],
        end=[one.end for one in ordered],
        gpus=[one.gpus for one in ordered],
        devices=[device for one in ordered for device in calendar.take(one.gpus, one.begin, one.end)],
    )
