"""The names of Voda's scheduler, for dashboards that were made for it.

Voda runs a scheduler for each type of GPU, and the type is a part of every name (``voda_scheduler_a100_scheduler_gpus``). One scheduler
serves all types here: the type where there is one, and ``default``, which is Voda's own word, where there are several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

import gantline
from gantline.live.service.counts import JobCounts
from gantline.live.view import View


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
