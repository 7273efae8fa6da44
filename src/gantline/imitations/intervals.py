"""Intervals in the log of a run, for imitations that count GPUs and not devices: each gets the lowest devices that are free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core import columns as c
from gantline.drivers.virtual import Simulation
from gantline.engine import log as g


@dataclass(frozen=True, slots=True)
class Interval:
    """A job held so many GPUs of one type from begin to end."""

    row: int
    begin: float
    end: float
    gpus: int
    reason: int


def write_intervals(simulation: Simulation, intervals: Sequence[Interval]) -> None:
    """Write them in order of their beginnings; the cluster has one type, and never more are held than there are."""
    t, log = simulation.state.tables, simulation.state.log
    ordered = sorted(intervals, key=lambda one: (one.begin, one.row))
    size = np.array([one.gpus for one in ordered], dtype=np.int64)
    n, total = len(ordered), int(size.sum())
    log.reserve(n, total)
    free_from, held = np.full(t.D.shape[1], -np.inf), []
    for one in ordered:
        idle = np.flatnonzero(free_from <= one.begin)[: one.gpus]
        free_from[idle] = one.end
        held += idle.tolist()
    row = np.array([one.row for one in ordered], dtype=np.int64)
    log.LI[g.L_ROW, :n], log.LI[g.L_OPTION, :n] = row, t.I[c.OPTION_FIRST][row]
    log.LI[g.L_REASON, :n] = [one.reason for one in ordered]
    log.LI[g.L_OFFSET, :n], log.LI[g.L_COUNT, :n], log.LI[g.L_NODE, :n] = np.cumsum(size) - size, size, -1
    log.LF[g.L_START, :n] = [one.begin for one in ordered]
    log.LF[g.L_END, :n] = [one.end for one in ordered]
    log.LD[: len(held)] = held
    log.LN[:] = n, len(held)
