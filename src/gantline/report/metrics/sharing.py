"""How users shared the cluster over time: what each held, how its work progressed, and whom it had reason to envy.

A *machine* is a GPU, or the node of a grant that takes cores alone, so that clusters of CPU and GPU nodes are counted too.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl

from gantline.core.areas import integral
from gantline.core.arrays import Floats
from gantline.report.frames import RunLike, node_gpus_of, settled, span_of

Steps = dict[str, tuple[Floats, Floats]]


def sharing(run: RunLike, by: str = "user") -> pl.DataFrame:
    """Per user or queue: its mean share of the machines over the run, the same while its jobs waited, and its envy.

    Envy is how much more of the cluster the largest holder held than the user did, averaged over the time in which the user
    had jobs waiting: 0 for one who never waits, or only while nobody holds more.
    """
    run = settled(run)
    start, end = span_of(run)
    held, whole = held_over_time(run, by), machines(run)
    at_most = _largest(held)
    rows = []
    for name, (times, present) in _waiting(run, by).items():
        mine = held.get(name, (np.empty(0), np.empty(0)))
        area = np.diff(integral(*mine, np.array([start, end])))[0]
        edges = np.append(times, end)
        waits = present > 0
        lengths, own, most = np.diff(edges)[waits], np.diff(integral(*mine, edges))[waits], np.diff(integral(*at_most, edges))[waits]
        waited = float(lengths.sum())
        rows.append(
            {
                by: name,
                "share": float(area) / (whole * (end - start)) if end > start else 0.0,
                "waited": waited,
                "share_waiting": float(own.sum()) / (whole * waited) if waited > 0 else None,
                "envy": float((most - own).sum()) / (whole * waited) if waited > 0 else 0.0,
            }
        )
    schema = {by: pl.String, "share": pl.Float64, "waited": pl.Float64, "share_waiting": pl.Float64, "envy": pl.Float64}
    return pl.DataFrame(rows, schema=schema).sort(by)


def held_over_time(run: RunLike, by: str = "user") -> Steps:
    """Per user or queue the machines it held, as a step function: times and values."""
    return _steps(_spans(settled(run), by), by, "machines")


def progress_over_time(run: RunLike, by: str = "user") -> Steps:
    """Per user or queue the speed of its work: GPU-seconds of what was asked for, done per second.

    A finished job's work is spread evenly over the time it ran, so that a slow device counts for less than a fast one; of a
    job that did not finish only the time it ran is known.
    """
    run = settled(run)
    asked = run.jobs.select("job", work=pl.col("duration") * pl.max_horizontal(pl.col("gpus"), 1), done=pl.col("state") == "completed")
    ran = (pl.col("end") - pl.col("start")).sum().over("job")
    spans = _spans(run, by).join(asked, on="job", how="left", maintain_order="left")
    speed = pl.when(pl.col("done") & (ran > 0)).then(pl.col("work") / ran).otherwise(pl.col("machines").cast(pl.Float64))
    return _steps(spans.with_columns(speed=speed), by, "speed")


def machines(run: RunLike) -> float:
    """How many machines there are: GPUs, and nodes without any; at least as many as were ever held at once."""
    there = sum(max(gpus, 1) for gpus in node_gpus_of(run))
    held = held_over_time(run, "all")
    return max(float(there), max((float(values.max()) for _, values in held.values() if values.size), default=0.0), 1.0)


def _spans(run: RunLike, by: str) -> pl.DataFrame:
    """Intervals with their owner and their machines."""
    owner = run.jobs.select("job", pl.lit("all").alias(by) if by == "all" else by)
    spans = run.allocations.select("job", "start", "end", machines=pl.max_horizontal(pl.col("gpus"), 1).cast(pl.Float64))
    return spans.join(owner, on="job", how="inner", maintain_order="left")


def _steps(spans: pl.DataFrame, by: str, column: str) -> Steps:
    """Sums of a column over the intervals that are open, per owner."""
    changes = pl.concat([spans.select(by, time="start", change=column), spans.select(by, time="end", change=-pl.col(column))])
    return _summed(changes, by)


def _summed(changes: pl.DataFrame, by: str) -> Steps:
    found = changes.group_by(by, "time").agg(pl.col("change").sum()).sort(by, "time")
    return {
        str(name): (rows["time"].to_numpy(), np.cumsum(rows["change"].to_numpy()))
        for (name,), rows in found.group_by([by], maintain_order=True)
    }


def _waiting(run: RunLike, by: str) -> Steps:
    """Jobs that wait, per owner: there from their arrival, away while they run, gone when they leave."""
    jobs = run.jobs.filter(pl.col("state") != "rejected")
    spans = run.allocations.join(jobs.select("job", by), on="job", how="inner")
    left = spans.filter(~pl.col("reason").is_in(["finished", "end"]))
    parts = [
        jobs.select(by, time="arrival", change=1.0),
        spans.select(by, time="start", change=-1.0),
        left.select(by, time="end", change=1.0),
    ]
    return _summed(pl.concat([part.select(by, "time", pl.col("change").cast(pl.Float64)) for part in parts]), by)


def _largest(held: Steps) -> tuple[Floats, Floats]:
    """What the largest holder has, over time."""
    changes = sorted((time, name, value) for name, (times, values) in held.items() for time, value in zip(times.tolist(), values.tolist()))
    level = dict.fromkeys(held, 0.0)
    holders = Counter(level.values())
    times: list[float] = []
    most: list[float] = []
    top = 0.0
    for time, name, value in changes:
        holders[level[name]] -= 1
        level[name] = value
        holders[value] += 1
        if value >= top:
            top = value
        elif holders[top] <= 0:
            top = max(amount for amount, count in holders.items() if count > 0)
        if times and times[-1] == time:
            most[-1] = top
        else:
            times.append(time)
            most.append(top)
    return np.array(times), np.array(most)
