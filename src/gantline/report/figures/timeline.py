"""The queue and the utilisation over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.report.figures.chart import Axis, Chart, Line, Panel, brief
from gantline.report.figures.durations import unit_for
from gantline.report.frames import RunLike, settled, span_of
from gantline.report.metrics import bin_means, with_utilisation
from gantline.report.names import names_of

SLICES = 400


def queue_and_utilisation(runs: Sequence[RunLike], slices: int = SLICES) -> Chart:
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
        means = bin_means(with_utilisation(run.series), ["queued", "utilisation"], start, end, own)
        time = (means["time"].to_numpy() - start) / unit.seconds
        queues.append(Line(brief(name), time, means["queued"].to_numpy(), colour=index, step=True))
        shares.append(Line(brief(name), time, means["utilisation"].to_numpy(), colour=index, step=True))
    time_axis = Axis("time since the first arrival", unit.name, low=0.0, high=longest / unit.seconds)
    top = Panel(time_axis, Axis("waiting", "jobs", low=0.0), tuple(queues), legend="above" if len(runs) > 1 else "none")
    below = Panel(time_axis, Axis("utilisation", percent=True, low=0.0, high=1.0), tuple(shares))
    note = f"Means over {slices} slices of {width / unit_for(width).seconds:.3g} {unit_for(width).name}."
    return Chart("timeline", "Queue and utilisation over time", (top, below), (note,))
