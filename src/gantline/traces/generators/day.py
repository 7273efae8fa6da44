"""A day of a shared 64-GPU cluster: some 600 jobs of three teams, quiet at night, crowded in the afternoon.

Not taken from one cluster; made to show everything on a small one: gangs of one to sixteen GPUs, queues with different
habits, experiments that fail early, and more work at four o'clock than fits.
"""

from __future__ import annotations

from gantline.traces.generators.preset import Preset
from gantline.traces.generators.settings import WorkloadSettings

SETTINGS = WorkloadSettings.read(
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
)

day = Preset("day", SETTINGS)
