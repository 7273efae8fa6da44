"""Which figures a report shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from gantline.lab.report.figures import (
    Chart,
    fairness_per_user,
    fragmentation_over_time,
    gantts,
    jct_cdf,
    pareto_front,
    progress_per_user,
    queue_and_utilization,
)
from gantline.lab.report.figures.users import users_by_time
from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics import Window

MOST_DRAWN = 8
MOST_GANTTS = 4
MOST_PROGRESS = 4


def choose_figures(
    runs: Sequence[RunLike], names: Sequence[str], measures: Sequence[Mapping[str, float]], window: Window | None = None
) -> tuple[dict[str, Chart], dict[str, Chart]]:
    """The figures of a report by a key each, and more of them: the trade-off only from three runs on, fairness only with several users."""
    drawn = runs[:MOST_DRAWN]
    first = {"jct": jct_cdf(drawn, window), "timeline": queue_and_utilization(drawn)}
    if len(runs) > 2:
        first["pareto"] = _trade_off(names, measures)
    users = users_by_time(runs)
    pictures = gantts(runs[:MOST_GANTTS], "user" if len(users) > 1 else "job")
    if len(runs) > MOST_GANTTS:
        note = f"Pictures of devices are drawn for the first {MOST_GANTTS} of {len(runs)} runs."
        pictures = replace(pictures, notes=(*pictures.notes, note))
    first["gantt"] = pictures
    more: dict[str, Chart] = {}
    if any(found["fragmentation"] > 0 for found in measures):
        more["fragmentation"] = fragmentation_over_time(drawn)
    if len(users) > 1:
        more["fairness"] = fairness_per_user(drawn)
        for number, (name, run) in enumerate(zip(names[:MOST_PROGRESS], runs)):
            picture = progress_per_user(run, users=users)
            more[f"progress-{number}"] = replace(picture, title=f"{picture.title}: {name}") if len(runs) > 1 else picture
    return first, more


def _trade_off(names: Sequence[str], measures: Sequence[Mapping[str, float]]) -> Chart:
    """Mean completion time against fairness, or against the makespan where there are no users to be fair to."""
    fair = all(math.isfinite(found["jain_users"]) for found in measures)
    frame = pl.DataFrame([{"name": name, **found} for name, found in zip(names, measures)])
    return pareto_front(frame, "jct_mean", "jain_users" if fair else "makespan")
