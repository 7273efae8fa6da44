"""Generators with complete settings, of which any can be changed: published clusters, a demonstration, a benchmark.

Statistics of the published clusters are listed with our values in `docs/workloads.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gantline.traces.generators.generic import generate_workload
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.trace import Trace


@dataclass(frozen=True)
class Preset:
    """A generator that draws from the settings of `base`, with those that are given put on top."""

    name: str
    base: WorkloadSettings

    def __call__(self, seed: int, given: Mapping[str, object]) -> Trace:
        return generate_workload(WorkloadSettings.read(given, self.base), seed, self.name)


_PHILLY_DURATIONS = {
    "1": {
        "kind": "quantiles",
        "points": [
            *((0, 1), (0.05, 52), (0.1, 62), (0.25, 120), (0.4, 600), (0.5, 1100), (0.6, 1700), (0.75, 2700)),
            *((0.85, 5300), (0.9, 8500), (0.95, 19e3), (0.97, 44e3), (0.98, 68e3), (0.99, 14e4), (0.995, 27e4)),
            *((0.999, 87e4), (1, 33e5)),
        ],
    },
    "2-4": {
        "kind": "quantiles",
        "points": [
            *((0, 2), (0.05, 11), (0.1, 15), (0.25, 21), (0.4, 85), (0.5, 370), (0.6, 5600), (0.75, 45e3)),
            *((0.85, 10e4), (0.9, 17e4), (0.95, 23e4), (0.99, 75e4), (0.999, 22e5), (1, 28e5)),
        ],
    },
    "5-8": {
        "kind": "quantiles",
        "points": [
            *((0, 1), (0.05, 120), (0.1, 220), (0.25, 1900), (0.4, 12e3), (0.5, 24e3), (0.6, 65e3), (0.75, 17e4)),
            *((0.85, 24e4), (0.9, 35e4), (0.95, 53e4), (0.99, 11e5), (0.999, 27e5), (1, 46e5)),
        ],
    },
    "9-": {
        "kind": "quantiles",
        "points": [
            *((0, 1), (0.05, 35), (0.1, 72), (0.25, 570), (0.4, 3200), (0.5, 21e3), (0.6, 54e3), (0.75, 10e4)),
            *((0.85, 18e4), (0.9, 25e4), (0.95, 44e4), (0.99, 92e4), (1, 17e5)),
        ],
    },
}

philly = Preset(
    "philly",
    WorkloadSettings.read(
        {
            "jobs": 10_000,
            "jobs_per_hour": 44,
            "sizes": {1: 0.9317, 2: 0.0221, 4: 0.0227, 8: 0.02, 16: 0.0025, 32: 0.0009, 64: 0.0001},
            "durations": _PHILLY_DURATIONS,
            "interarrival": "gamma",
            "variation": 2.0,
            "hours": [
                *(1.08, 0.91, 1.08, 0.94, 0.94, 1.08, 1.35, 1.25, 1.35, 1.15, 0.94, 0.81),
                *(0.71, 0.74, 0.71, 0.74, 0.78, 1.01, 1.01, 1.01, 1.01, 1.04, 1.11, 1.25),
            ],
            "weekdays": [0.87, 1.05, 1.13, 1.33, 1.45, 0.64, 0.54],
            "queues": {
                "vc01": 0.501,
                "vc02": 0.196,
                "vc03": 0.121,
                "vc04": 0.09,
                "vc05": 0.024,
                "vc06": 0.018,
                "vc07": 0.017,
                "vc08": 0.014,
                "vc09": 0.009,
                "vc10": 0.005,
                "vc11": 0.005,
            },
            "outcomes": {"completed": 0.693, "killed": 0.135, "failed": 0.172},
        }
    ),
)
"""Philly (Microsoft, 2017; Jeon et al., ATC 2019): mostly single-GPU jobs, heavy tails that grow with the size,
bursts, busy Fridays."""

helios = Preset(
    "helios",
    WorkloadSettings.read(
        {
            "jobs": 20_000,
            "jobs_per_hour": 360,
            "sizes": {1: 0.62, 2: 0.08, 4: 0.1, 8: 0.15, 16: 0.03, 32: 0.013, 64: 0.007},
            "durations": {
                "1": "lognormal(median=190s, sigma=2.55)",
                "2-4": "lognormal(median=200s, sigma=2.56)",
                "5-8": "lognormal(median=260s, sigma=2.83)",
                "9-": "lognormal(median=420s, sigma=2.94)",
            },
            "longest": "50d",
            "interarrival": "gamma",
            "variation": 4.5,
            "hours": [
                *(0.90, 0.66, 0.60, 0.38, 0.27, 0.21, 0.19, 0.22, 0.37, 0.80, 1.29, 1.47),
                *(1.16, 1.30, 1.56, 1.66, 1.73, 1.73, 1.28, 1.31, 1.34, 1.36, 1.15, 1.04),
            ],
            "weekdays": [1.03, 1.07, 1.28, 1.21, 0.95, 0.68, 0.78],
            "users": 300,
            "user_skew": 1.0,
            "queues": 25,
            "queue_skew": 0.8,
            "outcomes": {"completed": 0.624, "killed": 0.221, "failed": 0.155},
        }
    ),
)
"""Helios (SenseTime, 2020; Hu et al., SC 2021): a median of minutes, larger jobs that run longer, a strong rhythm of
day and night."""

pai = Preset(
    "pai",
    WorkloadSettings.read(
        {
            "jobs": 20_000,
            "jobs_per_hour": 345,
            "sizes": {1: 0.8, 2: 0.07, 4: 0.04, 8: 0.05, 16: 0.02, 32: 0.01, 64: 0.007, 128: 0.003},
            "durations": "quantiles(0=5s, 0.25=4m, 0.5=23m, 0.75=1h, 0.9=4.5h, 0.99=11h, 1=84h)",
            "interarrival": "gamma",
            "variation": 2.0,
            "hours": [
                *(0.85, 0.75, 0.65, 0.60, 0.60, 0.60, 0.65, 0.75, 0.90, 1.10, 1.25, 1.25),
                *(1.05, 1.10, 1.30, 1.35, 1.35, 1.30, 1.15, 1.10, 1.15, 1.15, 1.10, 0.95),
            ],
            "weekdays": [1.1, 1.1, 1.1, 1.1, 1.05, 0.8, 0.75],
            "users": 1300,
            "user_skew": 1.2,
        }
    ),
)
"""PAI (Alibaba, 2020; Weng et al., NSDI 2022): many recurring jobs of minutes to hours, very few heavy users, some
large gangs. Requests for a part of a GPU, which are common in PAI, become requests for one."""

day = Preset(
    "day",
    WorkloadSettings.read(
        {
            "jobs": 600,
            "length": "24h",
            "gpus": 64,
            "sizes": {1: 0.52, 2: 0.17, 4: 0.17, 8: 0.11, 16: 0.03},
            "durations": {
                "1": "lognormal(median=11m, sigma=1.5)",
                "2-4": "lognormal(median=17m, sigma=1.4)",
                "8-": "lognormal(median=30m, sigma=1.2)",
            },
            "shortest": "30s",
            "longest": "12h",
            "interarrival": "gamma",
            "variation": 1.6,
            "hours": [
                *(0.50, 0.40, 0.35, 0.30, 0.30, 0.30, 0.35, 0.50, 0.85, 1.30, 1.55, 1.50),
                *(1.10, 1.35, 1.70, 1.80, 1.80, 1.65, 1.30, 1.05, 1.05, 1.00, 0.80, 0.65),
            ],
            "users": {
                "ada": 18,
                "ben": 14,
                "chen": 11,
                "dana": 9,
                "elif": 8,
                "femi": 7,
                "gita": 6,
                "hugo": 5,
                "ines": 4,
                "jun": 4,
                "kofi": 3,
                "lena": 3,
            },
            "queues": {"research": 0.5, "product": 0.3, "teaching": 0.2},
            "models": {"resnet50": 4, "bert": 3, "gpt2": 2, "yolov3": 2, "deepspeech2": 1, "dlrm": 1},
            "outcomes": {"completed": 0.78, "killed": 0.12, "failed": 0.1},
        }
    ),
)
"""A day of a shared 64-GPU cluster: some 600 jobs of three teams, quiet at night, crowded in the afternoon. Not taken
from one cluster; made to show everything on a small one: gangs of one to sixteen GPUs, queues with different
habits, experiments that fail early, and more work at four o'clock than fits."""


@dataclass(frozen=True, slots=True)
class BenchmarkWorkload:
    """A workload of the public benchmark, with the cluster it is meant for and what is hard about it; a seed draws the trace.

    These are drawn, not shipped as files: a name and a seed are the workload. Durations are capped so that a run reaches its
    end within days of the last arrival, and loads are high enough that a scheduler has something to decide.
    """

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
        philly.base,
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
        helios.base,
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
            "hours": helios.base.hours,
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
