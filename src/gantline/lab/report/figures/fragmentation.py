"""Fragmentation over time: which share of the free GPUs no waiting job could use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gantline.core.errors import UsageError
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.durations import unit_for
from gantline.lab.report.figures.panels import Axis, Line, Panel, brief
from gantline.lab.report.figures.timeline import MOST_TOGETHER, SLICES
from gantline.lab.report.frames import RunLike, node_gpus_of, settled, span_of
from gantline.lab.report.metrics import bin_means
from gantline.lab.report.metrics.fragmentation import fragmentation_series
from gantline.lab.report.names import names_of


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
