"""Helios (SenseTime, 2020): a median of minutes, larger jobs that run longer, a strong rhythm of day and night.

Statistics of Hu et al., SC 2021, as listed with our values in `docs/workloads.md`.
"""

from __future__ import annotations

from gantline.traces.generators.preset import Preset
from gantline.traces.generators.settings import WorkloadSettings

SETTINGS = WorkloadSettings.read(
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
)

helios = Preset("helios", SETTINGS)
