"""Which deadlines were missed."""

from __future__ import annotations

import polars as pl


def deadline_outcome(jobs: pl.DataFrame, end: float) -> pl.Series:
    """``met``, ``missed`` or ``open`` for each job with a deadline, ``""`` for the others.

    A job that finished late, failed, was turned away or is still there when its deadline passes has missed it; an
    unfinished one whose deadline lies beyond ``end`` is open. A run that judged its own deadlines (``met``) is believed.
    """
    deadline = pl.col("deadline")
    in_time = pl.col("met") if "met" in jobs.columns else pl.col("finish") <= deadline
    done = (pl.col("state") == "completed") & pl.col("finish").is_finite()
    lost = pl.col("state").is_in(["failed", "rejected", "cancelled"])
    outcome = (
        pl.when(deadline.is_null() | deadline.is_nan())
        .then(pl.lit(""))
        .when(done)
        .then(pl.when(in_time).then(pl.lit("met")).otherwise(pl.lit("missed")))
        .when(lost | (deadline < end))
        .then(pl.lit("missed"))
        .otherwise(pl.lit("open"))
    )
    return jobs.select(outcome.alias("outcome"))["outcome"]
