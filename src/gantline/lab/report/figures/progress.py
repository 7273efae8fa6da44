"""The progress of each user's work, and the devices that each held."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.areas import integral
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.durations import unit_for
from gantline.lab.report.figures.panels import Axis, Line, Panel, brief
from gantline.lab.report.figures.users import users_by_time
from gantline.lab.report.frames import RunLike, settled, span_of
from gantline.lab.report.metrics.sharing import held_over_time, machines, progress_over_time

MOST_USERS = 8
SLICES = 200
SHARE_SLICES = 50  # what is held jumps up and down, so it is smoothed more


def progress_per_user(run: RunLike, slices: int = SLICES, users: Sequence[str] = ()) -> Chart:
    """Two panels over the same time, a line per user: work done so far, and the share of the machines held.

    `users` are those of several runs in one order, so that each has one colour in the figures of all; by default those of this run.
    """
    run = settled(run)
    start, end = span_of(run)
    edges = np.linspace(start, end, slices + 1)
    done = {user: integral(*steps, edges) for user, steps in progress_over_time(run).items()}
    held, whole = held_over_time(run), machines(run)
    shown = [user for user in users or users_by_time([run]) if user in done][:MOST_USERS]
    unit, width = unit_for(end - start), (end - start) / SHARE_SLICES
    time = (edges - start) / unit.seconds
    work = unit_for(max((float(done[user][-1]) for user in shown), default=0.0))
    rising = [Line(brief(user) or "(no user)", time, done[user] / work.seconds, colour=i) for i, user in enumerate(shown)]
    shares = []
    coarse = np.linspace(start, end, SHARE_SLICES + 1)
    for i, user in enumerate(shown):
        mean = np.diff(integral(*held[user], coarse)) / (width * whole) if width > 0 else np.zeros(SHARE_SLICES)
        shares.append(Line(brief(user) or "(no user)", (coarse[:-1] - start) / unit.seconds, mean, colour=i, step=True))
    axis = Axis("time since the first arrival", unit.name, low=0.0, high=(end - start) / unit.seconds)
    above = Panel(axis, Axis("work done", f"GPU-{work.name}", low=0.0), tuple(rising), legend="above")
    below = Panel(axis, Axis("share of the machines", percent=True, low=0.0), tuple(shares))
    notes = [f"The {MOST_USERS} users with the most GPU time of {len(done)}."] if len(done) > MOST_USERS else []
    return Chart("progress", "Progress of each user", (above, below), tuple(notes))
