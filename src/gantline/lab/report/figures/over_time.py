"""The queue and the utilization over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from gantline.core.errors import UsageError
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.panels import Axis, Line, Panel, Points, brief, unit_for
from gantline.lab.report.frames import RunLike, node_gpus_of, settled, span_of
from gantline.lab.report.labels import names_of
from gantline.lab.report.metrics import bin_means, received_share, with_utilization
from gantline.lab.report.metrics.fairness import held_over_time, machines, progress_over_time
from gantline.lab.report.metrics.fragmentation import fragmentation_series
from gantline.simulator.areas import integral

SLICES = 400
MOST_TOGETHER = 4
"""More curves than these in one panel cannot be distinguished: each run then has its own panel."""


def queue_and_utilization(runs: Sequence[RunLike]) -> Chart:
    """Two panels over the same time: waiting jobs, and the busy share of the GPUs that were up.

    Time counts from the first arrival of each run. Curves are means over equal slices of the longest run, so that all
    runs are smoothed alike.
    """
    runs = [settled(run) for run in runs]
    spans = [span_of(run) for run in runs]
    longest = max((end - start for start, end in spans), default=0.0)
    unit = unit_for(longest)
    width = longest / SLICES
    queues, shares = [], []
    for index, (name, run, (start, end)) in enumerate(zip(names_of(runs), runs, spans)):
        own = max(1, int(np.ceil((end - start) / width))) if width > 0 else 1
        means = bin_means(with_utilization(run.series), ["queued", "utilization"], start, end, own)
        time = (means["time"].to_numpy() - start) / unit.seconds
        queues.append(Line(brief(name), time, means["queued"].to_numpy(), colour=index, step=True))
        shares.append(Line(brief(name), time, means["utilization"].to_numpy(), colour=index, step=True))
    if len(runs) > MOST_TOGETHER:
        return _multiples(queues, shares, longest / unit.seconds, unit.name)
    time_axis = Axis("time since the first arrival", unit.name, low=0.0, high=longest / unit.seconds)
    top = Panel(time_axis, Axis("waiting", "jobs", low=0.0), tuple(queues), legend="above" if len(runs) > 1 else "none")
    below = Panel(time_axis, Axis("utilization", percent=True, low=0.0, high=1.0), tuple(shares))
    note = f"Means over {SLICES} slices of {width / unit_for(width).seconds:.3g} {unit_for(width).name}."
    return Chart("timeline", "Queue and utilization over time", (top, below), (note,))


def _multiples(queues: Sequence[Line], shares: Sequence[Line], end: float, unit: str) -> Chart:
    """A panel per run on equal axes: its queue as a curve, and its busy GPUs as a share of the height."""
    most = max((float(line.y.max()) for line in queues if line.y.size), default=0.0) or 1.0
    panels = []
    for queue, share in zip(queues, shares):
        unseen, nothing = np.full(share.y.size, np.nan), np.zeros(share.y.size)
        busy = Line("busy GPUs", share.x, unseen, low=nothing, high=share.y * most, quiet=True)  # a band without a line
        axis = Axis(brief(queue.name, 16), "jobs", low=0.0, high=1.05 * most)
        panels.append(Panel(Axis("time since the first arrival", unit, low=0.0, high=end), axis, (busy, queue), height=0.5))
    note = "Line: jobs that wait, all panels to one scale. Grey: busy GPUs, the full height is all of them."
    return Chart("timeline", "Queue and utilization over time, run by run", tuple(panels), (note,))


# Users in one order, so that each has one colour in all figures of a page.


def users_by_time(runs: Sequence[RunLike]) -> list[str]:
    """The users of all runs, the one with the most GPU time first."""
    demand = pl.concat([run.jobs.select("user", "gpu_seconds") for run in runs])
    ranked = demand.group_by("user").agg(pl.col("gpu_seconds").sum()).sort(["gpu_seconds", "user"], descending=[True, False])
    return [str(user) for user in ranked["user"].to_list()]


# Fragmentation over time: which share of the free GPUs no waiting job could use.


def fragmentation_over_time(runs: Sequence[RunLike], slices: int = SLICES) -> Chart:
    """A curve per run; a slice of time counts by the GPU time that was free in it while jobs waited. Many runs have a panel each."""
    runs = [settled(run) for run in runs]
    spans = [span_of(run) for run in runs]
    longest = max((end - start for start, end in spans), default=0.0)
    unit, width = unit_for(longest), longest / slices
    lines = []
    for index, (name, run, (start, end)) in enumerate(zip(names_of(runs), runs, spans)):
        sizes = node_gpus_of(run)
        if not sizes:
            raise UsageError(f"run '{name}' does not record the GPUs of its nodes", where="fragmentation", fix="run it again")
        own = max(1, int(np.ceil((end - start) / width))) if width > 0 else 1
        means = bin_means(fragmentation_series(run, sizes), ["stranded", "wanted_free"], start, end, own)
        free = means["wanted_free"].to_numpy()
        share = np.minimum(np.divide(means["stranded"].to_numpy(), free, out=np.zeros_like(free), where=free > 0), 1.0)
        lines.append(Line(brief(name), (means["time"].to_numpy() - start) / unit.seconds, share, colour=index, step=True))
    x = Axis("time since the first arrival", unit.name, low=0.0, high=longest / unit.seconds)
    y = Axis("fragmentation", percent=True, low=0.0, high=1.0)
    note = "Of the GPUs that were free while jobs waited, the share that a waiting job could not use (mean over the jobs that waited)."
    if len(runs) > MOST_TOGETHER:
        each = [Panel(x, replace(y, label=brief(line.name, 16)), (line,), height=0.4) for line in lines]
        return Chart("fragmentation", "Fragmentation over time, run by run", tuple(each), (note,))
    panel = Panel(x, y, tuple(lines), legend="above" if len(runs) > 1 else "none")
    return Chart("fragmentation", "Fragmentation over time", (panel,), (note,))


# The progress of each user's work, and the devices that each held.

MOST_LINES = 8
PROGRESS_SLICES = 200
SHARE_SLICES = 50  # what is held jumps up and down, so it is smoothed more


def progress_per_user(run: RunLike, users: Sequence[str] = ()) -> Chart:
    """Two panels over the same time, a line per user: work done so far, and the share of the machines held.

    `users` are those of several runs in one order, so that each has one colour in the figures of all; by default those of this run.
    """
    run = settled(run)
    start, end = span_of(run)
    edges = np.linspace(start, end, PROGRESS_SLICES + 1)
    done = {user: integral(*steps, edges) for user, steps in progress_over_time(run).items()}
    held, whole = held_over_time(run), machines(run)
    shown = [user for user in users or users_by_time([run]) if user in done][:MOST_LINES]
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
    notes = [f"The {MOST_LINES} users with the most GPU time of {len(done)}."] if len(done) > MOST_LINES else []
    return Chart("progress", "Progress of each user", (above, below), tuple(notes))


# How users were served, side by side.

MOST_ROWS = 25


def fairness_per_user(runs: Sequence[RunLike]) -> Chart:
    """The share of the GPU time they asked for that each user received, a row per user and a point per run."""
    names, runs = names_of(runs), [settled(run) for run in runs]
    shares = [dict(received_share(run.jobs, span_of(run)[1], "user").drop_nulls().iter_rows()) for run in runs]
    known = [user for user in users_by_time(runs) if any(user in share for share in shares)]
    shown = known[:MOST_ROWS]
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
    notes = (f"The {MOST_ROWS} users with the most GPU time of {len(known)}.",) if len(known) > MOST_ROWS else ()
    height = max(0.7, 0.1 * len(shown) + 0.25)
    panel = Panel(x_axis, y_axis, tuple(layers), legend="above" if len(runs) > 1 else "none", height=height)
    return Chart("fairness", "What each user received", (panel,), notes)
