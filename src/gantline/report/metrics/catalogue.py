"""The names of the metrics: title, unit and which way is better, for tables and axes alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["s", "h", "share", "count", "ratio", "jobs", "money", "kWh"]


@dataclass(frozen=True)
class Metric:
    """One number of a run and how to show it. ``better`` is ``""`` where neither way is better."""

    key: str
    title: str
    unit: Unit
    better: Literal["lower", "higher", ""] = ""


METRICS: tuple[Metric, ...] = (
    Metric("jobs", "Jobs", "count"),
    Metric("completed", "Completed", "count", "higher"),
    Metric("unfinished", "Unfinished", "count", "lower"),
    Metric("failed", "Failed", "count", "lower"),
    Metric("rejected", "Rejected", "count", "lower"),
    Metric("jct_mean", "Mean JCT", "s", "lower"),
    Metric("jct_median", "Median JCT", "s", "lower"),
    Metric("jct_p90", "90th percentile of JCT", "s", "lower"),
    Metric("jct_p95", "95th percentile of JCT", "s", "lower"),
    Metric("jct_p99", "99th percentile of JCT", "s", "lower"),
    Metric("jct_max", "Longest JCT", "s", "lower"),
    Metric("slowdown_mean", "Mean bounded slowdown", "ratio", "lower"),
    Metric("slowdown_p95", "95th percentile of slowdown", "ratio", "lower"),
    Metric("queueing_mean", "Mean queueing", "s", "lower"),
    Metric("queueing_p95", "95th percentile of queueing", "s", "lower"),
    Metric("responsiveness_mean", "Mean responsiveness", "s", "lower"),
    Metric("responsiveness_p95", "95th percentile of responsiveness", "s", "lower"),
    Metric("makespan", "Makespan", "s", "lower"),
    Metric("utilisation", "Utilisation", "share", "higher"),
    Metric("fragmentation", "Fragmentation", "share", "lower"),
    Metric("queue_mean", "Mean queue", "jobs", "lower"),
    Metric("queue_max", "Longest queue", "jobs", "lower"),
    Metric("preemptions", "Preemptions", "count", "lower"),
    Metric("restarts", "Restarts", "count", "lower"),
    Metric("work_lost", "Work lost", "s", "lower"),
    Metric("gpu_hours", "GPU-hours held", "h", "lower"),
    Metric("money", "Cost", "money", "lower"),
    Metric("energy", "Energy", "kWh", "lower"),
    Metric("jain_users", "Jain index over users", "ratio", "higher"),
    Metric("rho_mean", "Mean rho", "ratio", "lower"),
    Metric("rho_p95", "95th percentile of rho", "ratio", "lower"),
    Metric("rho_max", "Worst rho", "ratio", "lower"),
    Metric("rho_unfair", "Jobs with rho > 1", "share", "lower"),
    Metric("deadlines", "Jobs with a deadline", "count"),
    Metric("deadline_misses", "Deadlines missed", "count", "lower"),
    Metric("offered_load", "Offered load", "share"),
)
BY_KEY: dict[str, Metric] = {metric.key: metric for metric in METRICS}
