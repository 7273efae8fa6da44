"""Which deadlines were missed."""

from __future__ import annotations

import numpy as np
import polars as pl

from gantline.core.arrays import Ints
from gantline.simulator.run_columns import CANCELLED, COMPLETED, FAILED, REJECTED, JobColumns, jobs_of_frame

OUTCOMES = ("", "met", "missed", "open")
NO_DEADLINE, MET, MISSED, OPEN = range(len(OUTCOMES))


def deadline_outcome(jobs: pl.DataFrame, end: float) -> pl.Series:
    """``met``, ``missed`` or ``open`` for each job with a deadline, ``""`` for the others (see `outcomes`)."""
    return pl.Series("outcome", OUTCOMES, dtype=pl.String).gather(outcomes(jobs_of_frame(jobs), end))


def outcomes(jobs: JobColumns, end: float) -> Ints:
    """What became of each job's deadline, as a place in `OUTCOMES`.

    A job that finished late, failed, was turned away or is still there when its deadline passes has missed it; an
    unfinished one whose deadline lies beyond ``end`` is open. A run that judged its own deadlines (``met``) is believed.
    """
    in_time = jobs.finish <= jobs.deadline if jobs.met is None else jobs.met
    done = (jobs.state == COMPLETED) & np.isfinite(jobs.finish)
    lost = (jobs.state == FAILED) | (jobs.state == REJECTED) | (jobs.state == CANCELLED)
    found = np.where(done, np.where(in_time, MET, MISSED), np.where(lost | (jobs.deadline < end), MISSED, OPEN))
    return np.where(np.isnan(jobs.deadline), NO_DEADLINE, found)
