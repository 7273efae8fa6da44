"""Queue and use over time in polars' words, from the jobs and the intervals of a run: a step function with a row when something changes."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

Marks = Sequence[tuple[float, int]]
"""Moments from which on so many devices count."""


def series_of(jobs: pl.DataFrame, spans: pl.DataFrame, gpus: int, joined: Marks, down: Marks) -> pl.DataFrame:
    """Jobs that wait and run, the devices they hold and ask for, and those there are: ``gpus`` and what ``joined`` later.

    A device that several jobs hold together counts once.
    """
    zero, one = _counts()
    asked = pl.col("asked").cast(pl.Int64)
    held = spans.join(jobs.select("job", asked="gpus"), on="job", how="left", maintain_order="left")
    goes_on = ~pl.col("reason").is_in(["finished", "end"])
    parts = [
        jobs.filter(~pl.col("state").is_in(["rejected", "future"])).select(
            time="arrival", queued=one, running=zero, queued_gpus=pl.col("gpus").cast(pl.Int64), busy=zero
        ),
        held.select(time="start", queued=-one, running=one, queued_gpus=-asked, busy=zero),
        held.filter(pl.col("end").is_not_nan()).select(
            time="end",
            queued=pl.when(goes_on).then(one).otherwise(zero),
            running=-one,
            queued_gpus=pl.when(goes_on).then(asked).otherwise(zero),
            busy=zero,
        ),
        _use(spans).select("time", queued=zero, running=zero, queued_gpus=zero, busy="busy"),
    ]
    marks = pl.DataFrame({"time": [time for time, _ in (*joined, *down)]}, schema={"time": pl.Float64})
    parts.append(marks.select("time", queued=zero, running=zero, queued_gpus=zero, busy=zero))
    steps = pl.concat(parts).group_by("time").sum().sort("time")
    return steps.select(
        "time",
        pl.col("queued").cum_sum(),
        pl.col("running").cum_sum(),
        pl.col("busy").cum_sum().alias("busy_gpus"),
        _at(steps, down).alias("down_gpus"),
        (_at(steps, joined) + gpus).alias("total_gpus"),
        pl.col("queued_gpus").cum_sum(),
    )


def _counts() -> tuple[pl.Expr, pl.Expr]:
    """None, and one."""
    return pl.lit(0, dtype=pl.Int64), pl.lit(1, dtype=pl.Int64)


def _at(steps: pl.DataFrame, marks: Marks) -> pl.Series:
    """What a step function of (time, count) says at each moment; nothing before its first mark."""
    known = pl.DataFrame(list(marks), schema={"time": pl.Float64, "count": pl.Int64}, orient="row").sort("time", maintain_order=True)
    return steps.select("time").join_asof(known, on="time")["count"].fill_null(0)


def _use(spans: pl.DataFrame) -> pl.DataFrame:
    """By how much the number of devices in use changes, and when; one with several holders is in use from the first to the last."""
    _, one = _counts()
    each = spans.select("start", "end", device="devices").explode("device").drop_nulls("device").sort("device", "start")
    overlap = pl.col("start") < pl.col("end").fill_nan(float("inf")).shift(1).over("device")
    if not each.select(overlap.any()).item():
        count = pl.col("gpus").cast(pl.Int64)
        taken = spans.select(time="start", busy=count)
        return pl.concat([taken, spans.filter(pl.col("end").is_not_nan()).select(time="end", busy=-count)])
    changes = pl.concat(
        [
            each.select("device", time="start", holders=one),
            each.filter(pl.col("end").is_not_nan()).select("device", time="end", holders=-one),
        ]
    )
    changes = changes.group_by("device", "time").sum().sort("device", "time")
    used = (pl.col("holders").cum_sum().over("device") > 0).cast(pl.Int64)
    return changes.with_columns(used=used).select("time", busy=pl.col("used") - pl.col("used").shift(1, fill_value=0).over("device"))
