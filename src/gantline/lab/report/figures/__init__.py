"""Figures of runs and traces: functions that prepare a chart, drawn by matplotlib or in a page from the same numbers."""

from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.comparison import boxes_over_seeds, pareto_front
from gantline.lab.report.figures.completion import jct_against_load, jct_cdf
from gantline.lab.report.figures.fairness import fairness_per_user
from gantline.lab.report.figures.fragmentation import fragmentation_over_time
from gantline.lab.report.figures.gantt import gantt, gantts
from gantline.lab.report.figures.palette import DARK, LIGHT, THEMES, Theme
from gantline.lab.report.figures.progress import progress_per_user
from gantline.lab.report.figures.timeline import queue_and_utilization
from gantline.lab.report.figures.trace_statistics import duration_cdf, hours_of_day, size_shares

__all__ = [
    "DARK",
    "LIGHT",
    "THEMES",
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
