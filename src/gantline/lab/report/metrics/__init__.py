"""Numbers of a finished run: pure functions from its frames. ``docs/metrics.md`` defines each one."""

from gantline.lab.report.metrics.catalogue import BY_KEY, METRICS, Metric
from gantline.lab.report.metrics.columns import WHOLE, Window, bin_means, time_mean, tracked_window
from gantline.lab.report.metrics.completion import bounded_slowdown, cdf, deadline_outcome, distribution, makespan
from gantline.lab.report.metrics.devices import busy_share, energy, gpu_hours, money, per_type, with_utilization
from gantline.lab.report.metrics.fairness import (
    finish_time_fairness,
    held_over_time,
    jain_index,
    progress_over_time,
    received_share,
    sharing,
)
from gantline.lab.report.metrics.fragmentation import fragmentation, fragmentation_series
from gantline.lab.report.metrics.measure import Measuring, measure, per_group
from gantline.lab.report.metrics.steadiness import Steadiness, steadiness

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
