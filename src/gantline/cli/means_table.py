"""How a sweep ends on the screen: a row per policy and place, means with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gantline.cli.console import Column, Sheet, say, show

if TYPE_CHECKING:
    from gantline.lab.experiment.sweep import Sweep

BOUNDED = ("jct_mean", "jct_p95", "makespan")
"""Metrics whose interval is shown; the table for programs has all."""


def show_means(found: Sweep, metrics: Sequence[str] = ()) -> None:
    """Print means over seeds; where there are runs enough, the 95 % interval is beside each."""
    from gantline.lab.experiment.means import SHOWN, means_of, spread
    from gantline.lab.report.metrics import BY_KEY
    from gantline.lab.report.numbers import speller

    frame = means_of(found.results, metrics or SHOWN)
    shown = [BY_KEY[key] for key in metrics or SHOWN]
    places = frame.columns[: frame.columns.index("runs")]
    columns = [Column(name, right=frame[name].dtype.is_numeric()) for name in (*places, "runs")]
    rows = [[*(row[name] for name in places), f"{row['runs']}{row['mark']}"] for row in frame.iter_rows(named=True)]
    for metric in shown:
        write = speller(metric, frame[metric.key].to_list())
        bounds = [spread(row[f"{metric.key}_low"], row[f"{metric.key}_high"], write) for row in frame.iter_rows(named=True)]
        columns.append(Column(metric.key, True, title=metric.title.replace("percentile of ", ""), whole=True))
        for row, value in zip(rows, frame[metric.key]):
            row.append(write(value))
        if any(bounds) and metric.key in BOUNDED:
            columns.append(Column(f"{metric.key} interval", True, title="95 %", whole=True))
            for row, bound in zip(rows, bounds):
                row.append(bound)
    show(Sheet(tuple(columns), rows), "table")
    if frame["failed"].sum():
        say("note: failed runs are left out of the means")
