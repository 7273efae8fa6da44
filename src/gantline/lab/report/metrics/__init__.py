"""Numbers of a finished run: pure functions from its frames. ``docs/metrics.md`` defines each one."""

from gantline.lab.report.metrics.catalogue import BY_KEY, METRICS, Metric
from gantline.lab.report.metrics.completion import bounded_slowdown, cdf, distribution, makespan
from gantline.lab.report.metrics.cost import energy, gpu_hours, money
from gantline.lab.report.metrics.deadlines import deadline_outcome
from gantline.lab.report.metrics.fairness import finish_time_fairness, jain_index, received_share
from gantline.lab.report.metrics.fragmentation import fragmentation, fragmentation_series
from gantline.lab.report.metrics.groups import per_group
from gantline.lab.report.metrics.measure import measure, measure_with_steadiness
from gantline.lab.report.metrics.measuring import Measuring
from gantline.lab.report.metrics.sharing import held_over_time, progress_over_time, sharing
from gantline.lab.report.metrics.steadiness import Steadiness, steadiness
from gantline.lab.report.metrics.steps import bin_means, time_mean
from gantline.lab.report.metrics.types import per_type
from gantline.lab.report.metrics.utilization import busy_share, with_utilization
from gantline.lab.report.metrics.window import WHOLE, Window, tracked_window

__all__ = [
    "BY_KEY",
    "METRICS",
    "WHOLE",
    "Measuring",
    "Metric",
    "Steadiness",
    "Window",
    "bin_means",
    "bounded_slowdown",
    "busy_share",
    "cdf",
    "deadline_outcome",
    "distribution",
    "energy",
    "finish_time_fairness",
    "fragmentation",
    "fragmentation_series",
    "gpu_hours",
    "held_over_time",
    "jain_index",
    "makespan",
    "measure",
    "measure_with_steadiness",
    "money",
    "per_group",
    "per_type",
    "progress_over_time",
    "received_share",
    "sharing",
    "steadiness",
    "time_mean",
    "tracked_window",
    "with_utilization",
]
