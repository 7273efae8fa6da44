"""Figures of runs and traces: functions that prepare a chart, drawn by matplotlib or in a page from the same numbers."""

from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.comparison import (
    boxes_over_seeds,
    duration_cdf,
    hours_of_day,
    jct_against_load,
    jct_cdf,
    pareto_front,
    size_shares,
)
from gantline.lab.report.figures.gantt import gantt, gantts
from gantline.lab.report.figures.over_time import fairness_per_user, fragmentation_over_time, progress_per_user, queue_and_utilization
from gantline.lab.report.figures.panels import DARK, LIGHT, Theme

__all__ = [
    "DARK",
    "LIGHT",
    "Chart",
    "Theme",
    "boxes_over_seeds",
    "duration_cdf",
    "fairness_per_user",
    "fragmentation_over_time",
    "gantt",
    "gantts",
    "hours_of_day",
    "jct_against_load",
    "jct_cdf",
    "pareto_front",
    "progress_per_user",
    "queue_and_utilization",
    "size_shares",
]
