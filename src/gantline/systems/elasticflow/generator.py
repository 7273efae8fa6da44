"""ElasticFlow's workload (ASPLOS 2023): Philly-like lengths and sizes, and a deadline for every job.

The distributions are those of its artifact; the draws are ours. A deadline may lie before the job could end on the GPUs
that it asks for: an elastic scheduler has to give it more.
"""

from __future__ import annotations

from gantline.traces.generators.presets import Preset
from gantline.traces.generators.settings import WorkloadSettings

_MIDDLE = 60.0 * 10**2.5

SETTINGS = WorkloadSettings.read(
    {
        "jobs": 100,
        "jobs_per_hour": 3600 / 1500,
        "sizes": {1: 0.83, 2: 0.03, 4: 0.03, 8: 0.1, 16: 0.01},
        "durations": {"kind": "loguniform", "pieces": {f"600-{_MIDDLE}": 0.8, f"{_MIDDLE}-600000": 0.2}},
        "deadline_share": 1.0,
        "deadline_slack": (0.5, 1.5),
    }
)

elasticflow = Preset("elasticflow", SETTINGS)
