"""PAI (Alibaba, 2020): many recurring jobs of minutes to hours, very few heavy users, some large gangs.

Statistics of Weng et al., NSDI 2022, as listed with our values in `docs/workloads.md`. Requests for a part of a GPU,
which are common in PAI, become requests for one.
"""

from __future__ import annotations

from gantline.traces.generators.preset import Preset
from gantline.traces.generators.settings import WorkloadSettings

SETTINGS = WorkloadSettings.read(
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
)

pai = Preset("pai", SETTINGS)
