"""How many jobs there are and were, by what became of them, and how many decisions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

import gantline
from gantline.live.scheduler.decision_thread import BOUNDS, DecisionThread
from gantline.live.scheduler.view import JobView, View
from gantline.live.service.context import Context

ENDS = {"completed": ("succeeded",), "failed": ("failed", "timeout", "rejected"), "deleted": ("cancelled",)}
WAITING, RUNNING = ("pending", "held"), ("starting", "running", "resizing", "preempting")


@dataclass(frozen=True)
class JobCounts:
    """At one instant; jobs that have left for the archive are counted among those that ended."""

    created: int
    archived: int
    ended: Mapping[str, int]  # by the names of `ENDS`
    waiting: int
    running: int
    states: Mapping[str, int]  # of jobs that are in the store
    decisions: int
    seconds: float  # that decisions took

    @staticmethod
    def of(view: View, archived: Mapping[str, int]) -> JobCounts:
        """`archived`: how many jobs in the archive ended in each state."""
        states, left = Counter(job.state for job in view.jobs.values()), Counter(archived)
        return JobCounts(
            len(view.jobs) + left.total(), left.total(),
            {name: sum(states[one] + left[one] for one in ends) for name, ends in ENDS.items()},
            sum(states[one] for one in WAITING), sum(states[one] for one in RUNNING), states,
            int(view.counters.get("decisions", 0.0)), view.counters.get("decision_seconds", 0.0),
        )  # fmt: skip


# What Prometheus reads.
#
# Names follow Voda's scheduler (``jobs_ready``, ``gpus_inuse``, ``resched_duration_seconds``...) with our prefix;
# the kind of device is a label rather than a part of the name. `voda_metrics` has the same numbers under Voda's own
# names.

CONTENT_TYPE = CONTENT_TYPE_LATEST


def exposition(here: Context) -> str:
    """The text of one scrape; jobs one by one only where the caller may see them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scrape(here))
    return generate_latest(registry).decode()


class _Scrape(Collector):
    def __init__(self, here: Context) -> None:
        self._here = here

    def collect(self) -> Iterator[Metric]:
        view = self._here.scheduler.view()
        info = InfoMetricFamily("gantline_scheduler", "The scheduler and its policy.")
        info.add_metric([], {"version": gantline.__version__, "policy": view.policy})
        yield info
        yield _gauge("gantline_scheduler_up", "1 while the scheduler decides.", float(not self._here.service.health.why_not()))
        yield _gauge(
            "gantline_store_failing_seconds",
            "For how long the store could not be written; 0: it can.",
            self._here.service.health.failed_for(),
        )
        counts = JobCounts.of(view, self._here.scheduler.archived.get("states", {}))
        yield from _totals(view, counts, self._here.scheduler.archived, self._here.scheduler.decision_thread)
        yield from _queues(view)
        yield from _devices(view)
        yield from _nodes(view)
        yield from _jobs(view.now, self._here.jobs().values())
        yield from as_voda(view, counts)


def _gauge(name: str, help: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help, value=value)


def _totals(view: View, counts: JobCounts, old: Mapping[str, Any], decision_thread: DecisionThread) -> Iterator[Metric]:
    jobs, counters = view.jobs.values(), view.counters
    yield CounterMetricFamily("gantline_jobs_created", "Jobs ever submitted.", value=counts.created)
    for name, ends in ENDS.items():
        yield CounterMetricFamily(f"gantline_jobs_{name}", f"Jobs that ended as {' or '.join(ends)}.", value=counts.ended[name])
    yield _gauge("gantline_jobs_archived", "Jobs that have left the store for the archive.", counts.archived)
    yield _gauge("gantline_jobs_ready", "Jobs that have not ended.", counts.waiting + counts.running)
    yield _gauge("gantline_jobs_waiting", "Jobs without devices.", counts.waiting)
    yield _gauge("gantline_jobs_running", "Jobs with devices.", counts.running)
    by_state = GaugeMetricFamily("gantline_jobs", "Jobs by state.", labels=["state"])
    for state, count in sorted(counts.states.items()):
        by_state.add_metric([state], count)
    yield by_state
    yield CounterMetricFamily("gantline_resched", "Decisions.", value=counts.decisions)
    yield SummaryMetricFamily(
        "gantline_resched_duration_seconds", "Time that decisions took.", count_value=counts.decisions, sum_value=counts.seconds
    )
    yield from _decision_times(decision_thread)
    yield _gauge("gantline_jobs_stuck", "Jobs that have restarted three times in ten minutes without progress.", counters.get("stuck", 0.0))
    yield CounterMetricFamily("gantline_restarts", "Starts of jobs that had run before.", value=sum(job.restarts for job in jobs))
    yield CounterMetricFamily(
        "gantline_job_failures", "Exits with an error.", value=sum(job.failures for job in jobs) + old.get("failures", 0)
    )
    yield CounterMetricFamily("gantline_resizes", "Gangs that were given other devices while they ran.", value=counters.get("resizes", 0.0))
    yield CounterMetricFamily("gantline_store_failures", "Writes that the store refused.", value=counters.get("store_failures", 0.0))
    waits = [job.started - job.submitted for job in jobs if job.started is not None]
    yield SummaryMetricFamily(
        "gantline_job_wait_seconds",
        "From submission to the first start.",
        count_value=len(waits) + old.get("waits", 0),
        sum_value=sum(waits) + old.get("waited", 0.0),
    )
    took = [job.finished - job.submitted for job in jobs if job.finished is not None]
    yield SummaryMetricFamily(
        "gantline_job_completion_seconds", "From submission to the end.", count_value=len(took) + old.get("ends", 0),
        sum_value=sum(took) + old.get("took", 0.0),
    )  # fmt: skip


def _decision_times(decision_thread: DecisionThread) -> Iterator[Metric]:
    """How long decisions take, as a histogram, which shows how many are slow; a mean does not."""
    counted, total = [], 0
    for bound, count in zip([*map(str, BOUNDS), "+Inf"], list(decision_thread.buckets), strict=True):
        total += count
        counted.append((bound, total))
    yield HistogramMetricFamily(
        "gantline_decision_seconds", "Time that decisions took.", buckets=counted, sum_value=decision_thread.seconds
    )
    yield CounterMetricFamily("gantline_decision_overruns", "Decisions that took longer than they may.", value=decision_thread.overruns)


def _queues(view: View) -> Iterator[Metric]:
    counts = GaugeMetricFamily("gantline_queue_jobs", "Jobs of a queue by state, those that have not ended.", labels=["queue", "state"])
    held = GaugeMetricFamily("gantline_queue_gpus_inuse", "Devices that a queue's jobs hold.", labels=["queue"])
    oldest = GaugeMetricFamily(
        "gantline_queue_oldest_wait_seconds", "How long the oldest job without devices has waited.", labels=["queue"]
    )
    active = [job for job in view.jobs.values() if job.finished is None]
    for (queue, state), count in sorted(Counter((job.queue, job.state) for job in active).items()):
        counts.add_metric([queue, state], count)
    for queue in sorted({job.queue for job in active}):
        mine = [job for job in active if job.queue == queue]
        held.add_metric([queue], sum(len(job.devices) for job in mine))
        oldest.add_metric([queue], max((view.now - job.submitted for job in mine if job.state in WAITING), default=0.0))
    yield from (counts, held, oldest)


def _devices(view: View) -> Iterator[Metric]:
    total = GaugeMetricFamily("gantline_gpus", "Devices that may be used.", labels=["type"])
    inuse = GaugeMetricFamily("gantline_gpus_inuse", "Devices that jobs hold.", labels=["type"])
    busy = GaugeMetricFamily("gantline_device_jobs", "Jobs on a device.", labels=["node", "device", "type"])
    up = GaugeMetricFamily("gantline_device_up", "1: new jobs may come; 0: cordoned or gone.", labels=["node", "device", "type"])
    for kind in dict.fromkeys(device.type for device in view.devices):
        mine = [device for device in view.devices if device.type == kind]
        total.add_metric([kind], sum(device.up for device in mine))
        inuse.add_metric([kind], sum(bool(device.jobs) for device in mine))
    for device in view.devices:
        busy.add_metric([device.node, device.name, device.type], len(device.jobs))
        up.add_metric([device.node, device.name, device.type], float(device.up))
    yield from (total, inuse, busy, up)


def _nodes(view: View) -> Iterator[Metric]:
    """What nodes have beside devices; taken is what their jobs have asked for, used or not."""
    for what, unit, words in (("cpus", "", "CPUs"), ("memory", "_gigabytes", "Memory")):
        total = GaugeMetricFamily(f"gantline_node_{what}{unit}", f"{words} of a node.", labels=["node"])
        taken = GaugeMetricFamily(f"gantline_node_{what}_taken{unit}", f"{words} of a node that its jobs have asked for.", labels=["node"])
        for name, node in view.nodes.items():
            if getattr(node, what) > 0.0:
                total.add_metric([name], getattr(node, what))
                taken.add_metric([name], getattr(node, f"{what}_taken"))
        yield from (total, taken)


def _jobs(now: float, jobs: Iterable[JobView]) -> Iterator[Metric]:
    labels = ["job", "name", "user", "queue"]
    gpus = GaugeMetricFamily("gantline_job_gpus", "Devices of a job that runs.", labels=labels)
    ran = GaugeMetricFamily("gantline_job_service_seconds", "How long a job that runs has run.", labels=labels)
    speed = GaugeMetricFamily("gantline_job_throughput", "What a job reports, in its own units per second.", labels=labels)
    share = GaugeMetricFamily("gantline_job_progress_ratio", "Done of total, as a job reports it.", labels=labels)
    for job in jobs:
        if job.state not in RUNNING:
            continue
        values = [job.id, job.name, job.user, job.queue]
        gpus.add_metric(values, len(job.devices))
        ran.add_metric(values, job.service)
        if isinstance(job.progress.get("throughput"), (int, float)):
            speed.add_metric(values, float(job.progress["throughput"]))
        if job.progress.get("total"):
            share.add_metric(values, float(job.progress.get("done") or 0.0) / float(job.progress["total"]))
    yield from (gpus, ran, speed, share)


# The names of Voda's scheduler, for dashboards that were made for it.
#
# Voda runs a scheduler for each type of GPU, and the type is a part of every name
# (``voda_scheduler_a100_scheduler_gpus``). One scheduler serves all types here: the type where there is one, and
# ``default``, which is Voda's own word, where there are several.


def as_voda(view: View, counts: JobCounts) -> Iterator[Metric]:
    """What both have: jobs, decisions and devices."""
    types = {device.type for device in view.devices}
    kind = types.pop() if len(types) == 1 else "default"
    name = f"voda_scheduler_{re.sub('[^a-zA-Z0-9_]', '_', kind)}_scheduler"
    info = GaugeMetricFamily(f"{name}_info", "1.", labels=["version", "scheduler"])
    info.add_metric([gantline.__version__, kind], 1)
    yield info
    yield CounterMetricFamily(f"{name}_jobs_created", "Jobs ever submitted.", value=counts.created)
    for end, count in counts.ended.items():
        yield CounterMetricFamily(f"{name}_jobs_{end}", f"Jobs {end}.", value=count)
    yield CounterMetricFamily(f"{name}_resched", "Decisions.", value=counts.decisions)
    took = f"{name}_resched_duration_seconds"
    yield SummaryMetricFamily(took, "Time that decisions took.", count_value=counts.decisions, sum_value=counts.seconds)
    gauges = {
        "jobs_ready": counts.waiting + counts.running, "jobs_waiting": counts.waiting, "jobs_running": counts.running,
        "gpus": sum(device.up for device in view.devices), "gpus_inuse": sum(bool(device.jobs) for device in view.devices),
    }  # fmt: skip
    for suffix, value in gauges.items():
        yield GaugeMetricFamily(f"{name}_{suffix}", f"As gantline_{suffix}.", value=value)
    yield CounterMetricFamily("voda_scheduler_training_service_jobs_created", "Jobs ever submitted.", value=counts.created)
    yield CounterMetricFamily("voda_scheduler_training_service_jobs_deleted", "Jobs deleted.", value=counts.ended["deleted"])
