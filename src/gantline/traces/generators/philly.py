"""Philly (Microsoft, 2017): mostly single-GPU jobs, heavy tails that grow with the size, bursts, busy Fridays.

Statistics of the public trace of Jeon et al., ATC 2019, as listed with our values in `docs/workloads.md`.
"""

from __future__ import annotations

from gantline.traces.generators.preset import Preset
from gantline.traces.generators.settings import WorkloadSettings

_DURATIONS = {
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

SETTINGS = WorkloadSettings.read(
    {
        "jobs": 10_000,
        "jobs_per_hour": 44,
        "sizes": {1: 0.9317, 2: 0.0221, 4: 0.0227, 8: 0.02, 16: 0.0025, 32: 0.0009, 64: 0.0001},
        "durations": _DURATIONS,
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
)

philly = Preset("philly", SETTINGS)
