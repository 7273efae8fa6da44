"""The queue and the utilization over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.durations import unit_for
from gantline.lab.report.figures.panels import Axis, Line, Panel, brief
from gantline.lab.report.frames import RunLike, settled, span_of
from gantline.lab.report.metrics import bin_means, with_utilization
from gantline.lab.report.names import names_of

SLICES = 400
MOST_TOGETHER = 4
"""More curves than these in one panel cannot be distinguished: each run then has its own panel."""


def queue_and_utilization(runs: Sequence[RunLike], slices: int = SLICES) -> Chart:
    """Two panels over the same time: waiting jobs, and the busy share of the GPUs that were up.

    Time counts from the first arrival of each run. Curves are means over equal slices of the longest run, so that all
    runs are smoothed alike.
    """
    runs = [settled(run) for run in runs]
    spans = [span_of(run) for run in runs]
    longest = max((end - start for start, end in spans), default=0.0)
    unit = unit_for(longest)
    width = longest / slices
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
    note = f"Means over {slices} slices of {width / unit_for(width).seconds:.3g} {unit_for(width).name}."
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
