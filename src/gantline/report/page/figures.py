"""Which figures a report shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from gantline.report.figures import (
    Chart,
    fairness_per_user,
    fragmentation_over_time,
    gantt,
    jct_cdf,
    pareto_front,
    progress_per_user,
    queue_and_utilization,
)
from gantline.report.frames import RunLike
from gantline.report.metrics import Window

MOST_DRAWN = 8
MOST_GANTTS = 4
MOST_PROGRESS = 4


def choose_figures(
    runs: Sequence[RunLike], names: Sequence[str], measures: Sequence[Mapping[str, float]], window: Window | None = None
) -> dict[str, Chart]:
    """The figures of a report by a key each: the trade-off only from three runs on, fairness only with several users."""
    drawn = runs[:MOST_DRAWN]
    charts = {"jct": jct_cdf(drawn, window), "timeline": queue_and_utilization(drawn)}
    if any(found["fragmentation"] > 0 for found in measures):
        charts["fragmentation"] = fragmentation_over_time(drawn)
    users = max(run.jobs["user"].n_unique() for run in drawn) if drawn else 0
    if users > 1:
        charts["fairness"] = fairness_per_user(drawn)
        for number, (name, run) in enumerate(zip(names[:MOST_PROGRESS], runs)):
            picture = progress_per_user(run)
            charts[f"progress-{number}"] = replace(picture, title=f"{picture.title}: {name}") if len(runs) > 1 else picture
    if len(runs) > 2:
        charts["pareto"] = _trade_off(names, measures)
    for number, (name, run) in enumerate(zip(names[:MOST_GANTTS], runs)):
        picture = gantt(run, "user" if users > 1 else "job")
        charts[f"gantt-{number}"] = replace(picture, title=f"{picture.title}: {name}") if len(runs) > 1 else picture
    if len(runs) > MOST_GANTTS:
        last = f"gantt-{MOST_GANTTS - 1}"
        note = f"Pictures of devices are drawn for the first {MOST_GANTTS} of {len(runs)} runs."
        charts[last] = replace(charts[last], notes=(*charts[last].notes, note))
    return charts


def _trade_off(names: Sequence[str], measures: Sequence[Mapping[str, float]]) -> Chart:
    """Mean completion time against fairness, or against the makespan where there are no users to be fair to."""
    fair = all(math.isfinite(found["jain_users"]) for found in measures)
    frame = pl.DataFrame([{"name": name, **found} for name, found in zip(names, measures)])
    return pareto_front(frame, "jct_mean", "jain_users" if fair else "makespan")
