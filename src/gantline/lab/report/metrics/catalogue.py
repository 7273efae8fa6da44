"""The names of the metrics: title, unit and whether lower or higher is better, for tables and axes alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["s", "h", "share", "count", "ratio", "jobs", "money", "kWh", "kg"]


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
    Metric("utilization", "Utilization", "share", "higher"),
    Metric("fragmentation", "Fragmentation", "share", "lower"),
    Metric("typical_fragmentation", "Fragmentation, typical mix", "share", "lower"),
    Metric("queue_mean", "Mean queue", "jobs", "lower"),
    Metric("queue_max", "Longest queue", "jobs", "lower"),
    Metric("preemptions", "Preemptions", "count", "lower"),
    Metric("restarts", "Restarts", "count", "lower"),
    Metric("resizes", "Resizes", "count", "lower"),
    Metric("migrations", "Migrations", "count", "lower"),
    Metric("time_lost", "Time lost to changes", "s", "lower"),
    Metric("cross_node", "Jobs across nodes", "share", "lower"),
    Metric("cross_rack", "Jobs across racks", "share", "lower"),
    Metric("communication", "Time on links", "s", "lower"),
    Metric("link_overload", "Links overloaded", "s", "lower"),
    Metric("work_lost", "Work lost", "s", "lower"),
    Metric("gpu_hours", "GPU-hours held", "h", "lower"),
    Metric("money", "Cost", "money", "lower"),
    Metric("energy", "Energy", "kWh", "lower"),
    Metric("carbon", "Carbon", "kg", "lower"),
    Metric("energy_cost", "Cost of power", "money", "lower"),
    Metric("jain_users", "Jain index over users", "ratio", "higher"),
    Metric("rho_mean", "Mean rho (share)", "ratio", "lower"),
    Metric("rho_p95", "95th percentile of rho (share)", "ratio", "lower"),
    Metric("rho_max", "Worst rho (share)", "ratio", "lower"),
    Metric("rho_unfair", "Jobs with rho (share) > 1", "share", "lower"),
    Metric("rho_contention_mean", "Mean rho (contention)", "ratio", "lower"),
    Metric("rho_contention_max", "Worst rho (contention)", "ratio", "lower"),
    Metric("rho_static_mean", "Mean rho (static)", "ratio", "lower"),
    Metric("rho_static_max", "Worst rho (static)", "ratio", "lower"),
    Metric("deadlines", "Jobs with a deadline", "count"),
    Metric("deadline_misses", "Deadlines missed", "count", "lower"),
    Metric("deadline_satisfaction", "Deadlines met", "share", "higher"),
    Metric("offered_load", "Offered load", "share"),
)
BY_KEY: dict[str, Metric] = {metric.key: metric for metric in METRICS}

MEANINGS: dict[str, str] = {
    "jobs": "jobs that count",
    "completed": "jobs that did all their work",
    "unfinished": "jobs that ran, waited or had yet to arrive when the run stopped",
    "jct_mean": "from arrival to completion, mean over jobs",
    "jct_median": "half of the jobs complete within this time of their arrival",
    "jct_p90": "nine of ten jobs complete within this time of their arrival",
    "jct_p95": "95 of 100 jobs complete within this time of their arrival",
    "jct_p99": "99 of 100 jobs complete within this time of their arrival",
    "slowdown_mean": "completion time by run time, very short jobs counted as longer; 1 is a job that never waits",
    "queueing_mean": "completion time less the time with devices",
    "responsiveness_mean": "from arrival to the first start",
    "makespan": "from the first arrival to the last completion",
    "utilization": "held share of the GPUs that were up, a shared GPU counted once",
    "fragmentation": "share of the free GPUs that no waiting job could use, while jobs wait",
    "typical_fragmentation": "share of the free GPUs, parts included, that typical jobs of the run could not use",
    "queue_mean": "jobs that wait, mean over time",
    "preemptions": "how often running jobs were stopped for others",
    "restarts": "how often jobs began again after a failure",
    "resizes": "how often running jobs were given another number of devices",
    "migrations": "how often running jobs went on with other devices",
    "time_lost": "seconds that jobs held devices for a start, a resume, a resize or a move, and did no work",
    "cross_node": "jobs that ever spanned more than one node, of those that ran",
    "cross_rack": "jobs that ever spanned more than one rack, of those that ran",
    "communication": "seconds that jobs communicated or waited for links, in all",
    "link_overload": "seconds in which the mean demand of jobs exceeded a link, summed over the links",
    "work_lost": "work done since the last checkpoint before a failure",
    "gpu_hours": "GPUs times the hours they were held, starts and other changes included",
    "money": "hours of devices held, times their prices",
    "energy": "what devices drew, held or idle",
    "carbon": "what the grid emitted for it, moment by moment",
    "energy_cost": "what it cost, moment by moment",
    "jain_users": "how even users' shares are; 1 is equal",
    "rho_mean": "completion time by that in an equal share of the cluster; above 1 is worse than one's share",
    "deadline_misses": "jobs that completed after their deadline, or will",
    "deadline_satisfaction": "of the deadlines that were met or missed, those met; a job that was turned away missed its",
    "offered_load": "GPU time that jobs ask for, by what there is",
}
"""A metric in half a sentence."""
