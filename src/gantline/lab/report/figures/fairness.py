"""How users were served, side by side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.panels import Axis, Panel, Points, brief
from gantline.lab.report.figures.users import users_by_time
from gantline.lab.report.frames import RunLike, settled, span_of
from gantline.lab.report.metrics import received_share
from gantline.lab.report.names import names_of

MOST_USERS = 25


def fairness_per_user(runs: Sequence[RunLike]) -> Chart:
    """The share of the GPU time they asked for that each user received, a row per user and a point per run."""
    names, runs = names_of(runs), [settled(run) for run in runs]
    shares = [dict(received_share(run.jobs, span_of(run)[1], "user").drop_nulls().iter_rows()) for run in runs]
    known = [user for user in users_by_time(runs) if any(user in share for share in shares)]
    shown = known[:MOST_USERS]
    shown.sort(key=lambda user: float(np.mean([share[user] for share in shares if user in share])))
    row = {user: float(i) for i, user in enumerate(shown)}
    layers = []
    for index, (name, share) in enumerate(zip(names, shares)):
        there = [user for user in shown if user in share]
        x, y = np.array([share[user] for user in there]), np.array([row[user] for user in there])
        layers.append(Points(brief(name), x, y, colour=index))
    ticks = tuple((row[user], brief(user) or "(no user)") for user in shown)
    most = max((value for share in shares for value in share.values()), default=1.0)
    x_axis = Axis("GPU time received of asked", percent=True, low=0.0, high=max(1.0, most * 1.02))
    y_axis = Axis("user", low=-0.6, high=max(len(shown), 1) - 0.4, ticks=ticks)
    notes = (f"The {MOST_USERS} users with the most GPU time of {len(known)}.",) if len(known) > MOST_USERS else ()
    height = max(0.7, 0.1 * len(shown) + 0.25)
    panel = Panel(x_axis, y_axis, tuple(layers), legend="above" if len(runs) > 1 else "none", height=height)
    return Chart("fairness", "What each user received", (panel,), notes)
