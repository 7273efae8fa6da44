"""How many jobs wait over time, from the tables and the log of a run: what `Run.series` says of it, without its frames."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.columns import Job
from gantline.core.phases import COMPLETED, FUTURE, REJECTED
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.log import Interval, Log, LogSize


def let_in(tables: Tables) -> Bools:
    """The jobs that have arrived and were not turned away."""
    phase = tables.I[Job.PHASE]
    inside: Bools = (phase != REJECTED) & (phase != FUTURE)
    return inside


def lost_gpu_time(tables: Tables, log: Log, held: Floats) -> Floats:
    """GPU time that each job held beyond what it asks for; 0 for one that did not finish, or was given more devices than it asked for."""
    count = int(log.LN[LogSize.INTERVALS])
    widest = np.zeros(tables.I.shape[1], dtype=np.int64)
    np.maximum.at(widest, log.LI[Interval.ROW, :count], log.LI[Interval.COUNT, :count])
    asked = tables.I[Job.GPUS]
    within = (tables.I[Job.PHASE] == COMPLETED) & (widest <= asked)
    return np.where(within, np.maximum(held - asked * tables.F[Job.WORK], 0.0), 0.0)


def queue_steps(tables: Tables, log: Log) -> tuple[Floats, Floats]:
    """Times in order, and how many jobs wait from then on."""
    count = int(log.LN[LogSize.INTERVALS])
    start, end, reason = log.LF[Interval.START, :count], log.LF[Interval.END, :count], log.LI[Interval.REASON, :count]
    arrived = tables.F[Job.ARRIVAL][let_in(tables)]
    back = end[~np.isnan(end) & (reason != Reason.FINISHED) & (reason != Reason.END)]
    times = np.concatenate([arrived, start, back])
    change = np.concatenate([np.ones(len(arrived)), -np.ones(count), np.ones(len(back))])
    order = np.argsort(times, kind="stable")
    return times[order], np.cumsum(change[order])
