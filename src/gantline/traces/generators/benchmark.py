"""The five workloads of the public benchmark: settings, the cluster each is meant for, and what is hard about it.

They are drawn, not shipped as files: a name and a seed are the workload. Durations are capped so that a run reaches its
end within days of the last arrival, and loads are high enough that a scheduler has something to decide.
"""

from __future__ import annotations

from dataclasses import dataclass

from gantline.traces.generators import helios, philly
from gantline.traces.generators.generic import generate_workload
from gantline.traces.generators.preset import Preset
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.trace import Trace


@dataclass(frozen=True, slots=True)
class BenchmarkWorkload:
    """A workload with the cluster it is meant for; calling it with a seed draws the trace."""

    name: str
    summary: str
    cluster: str
    settings: WorkloadSettings

    def __call__(self, seed: int = 0) -> Trace:
        return generate_workload(self.settings, seed, self.name)


def _workload(name: str, cluster: str, summary: str, given: dict[str, object], base: WorkloadSettings | None = None) -> BenchmarkWorkload:
    return BenchmarkWorkload(name, summary, cluster, WorkloadSettings.read(given, base))


_WORKLOADS = (
    _workload(
        "steady",
        "16x8",
        "Philly's sizes and durations, Poisson arrivals: long jobs must not hold up the many short ones",
        {
            "jobs": 3000,
            "load": 0.85,
            "gpus": 128,
            "longest": "3d",
            "interarrival": "poisson",
            "variation": 1,
            "sizes": "1:0.75,2:0.08,4:0.08,8:0.07,16:0.02",
            "hours": [1] * 24,
            "weekdays": [1] * 7,
        },
        philly.SETTINGS,
    ),
    _workload(
        "bursty",
        "16x8",
        "Helios' day and night with bursts: a light load on average, and long queues in the afternoon",
        {
            "jobs": 4000,
            "load": 0.7,
            "gpus": 128,
            "longest": "1d",
            "users": 60,
            "queues": 6,
            "sizes": "1:0.6,2:0.1,4:0.12,8:0.15,16:0.03",
            "durations": "lognormal(median=8m, sigma=1.9)",
        },
        helios.SETTINGS,
    ),
    _workload(
        "gangs",
        "32x8",
        "half of all jobs need two servers or more, with a long tail: room must be made and kept for gangs",
        {
            "jobs": 2000,
            "load": 0.85,
            "gpus": 256,
            "longest": "4d",
            "users": 30,
            "queues": 4,
            "sizes": "1:0.1,4:0.15,8:0.25,16:0.2,32:0.17,64:0.1,128:0.03",
            "durations": "weibull(scale=90m, shape=0.55)",
            "interarrival": "gamma",
            "variation": 1.5,
        },
    ),
    _workload(
        "swarm",
        "8x8",
        "thousands of jobs of minutes on one or two GPUs, near saturation: decisions must be quick and cheap",
        {
            "jobs": 5000,
            "load": 0.95,
            "gpus": 64,
            "shortest": "20s",
            "longest": "4h",
            "users": 40,
            "user_skew": 1.2,
            "sizes": "1:0.88,2:0.12",
            "durations": "lognormal(median=6m, sigma=1.0)",
            "queues": 5,
        },
    ),
    _workload(
        "mixed",
        "v100:8x4,p100:8x4,k80:16x4",
        "three device types, users, elastic jobs and deadlines: which jobs get the fast devices, and which are turned away",
        {
            # The load counts durations on a V100; the whole cluster is worth some 74 of them, so that half of its 128
            # devices is 0.87 of what it can do.
            "jobs": 2500,
            "load": 0.5,
            "gpus": 128,
            "longest": "2d",
            "start_hour": 8,
            "hours": helios.SETTINGS.hours,
            "sizes": "1:0.58,2:0.16,4:0.18,8:0.08",
            "durations": "lognormal(median=25m, sigma=1.6)",
            "speeds": "v100:1,p100:0.6,k80:0.25",
            "sensitivity": "0.4-1.2",
            "elastic_share": 0.4,
            "deadline_share": 0.6,
            "deadline_slack": "1.5-8",
            "users": 24,
            "queues": 4,
            "priorities": "0:0.85,1:0.15",
            "models": "resnet50:4,bert:3,gpt2:2,dlrm:2,a3c:1",
        },
    ),
)

steady, bursty, gangs, swarm, mixed = (Preset(made.name, made.settings) for made in _WORKLOADS)


def benchmark_traces() -> dict[str, BenchmarkWorkload]:
    """The benchmark: name -> workload, in the order in which results are listed."""
    return {made.name: made for made in _WORKLOADS}
