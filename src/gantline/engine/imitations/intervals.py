"""Which job held what from when to when, as an original reports it, in the log of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.columns import Job
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.log import Interval


class DeviceSeats:
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
    seats = DeviceSeats(t.D.shape[1])
    row = np.array([one.row for one in ordered], dtype=np.int64)
    write_log(
        simulation,
        row=row,
        option=t.I[Job.OPTION_FIRST][row],
        reason=[one.reason for one in ordered],
        begin=[one.begin for one in ordered],
        end=[one.end for one in ordered],
        gpus=[one.gpus for one in ordered],
        devices=[device for one in ordered for device in seats.take(one.gpus, one.begin, one.end)],
    )
