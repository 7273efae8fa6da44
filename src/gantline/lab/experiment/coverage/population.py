"""Many seeds of a heavy-tailed workload under several policies: what tables of a few seeds are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.policy import Policy
from gantline.lab.experiment.coverage.random_order import RandomOrder
from gantline.simulator.simulate import simulate
from gantline.traces.generators import generate
from gantline.traces.generators.generic import work_per_job
from gantline.traces.generators.settings import WorkloadSettings

CLUSTER, GPUS, LOAD, JOBS = "4x4", 16, 0.9, 300
METRICS = ("jct_mean", "jct_p95", "makespan")
SHAPE = {"sizes": "1:0.5,2:0.2,4:0.2,8:0.1", "durations": "lognormal(median=1h, sigma=1.5)"}
EQUALS = tuple(f"equal {salt}" for salt in range(6))
RIVALS = ("fifo", "srtf", "las")

Population = Mapping[str, Floats]
"""Policy -> values, shape (seeds, metrics)."""


@dataclass(frozen=True)
class Workload:
    """Gangs with log-normal durations, 300 jobs, load 0.9 of 16 GPUs: `stretched` to that load in every seed, or as it falls."""

    stretched: bool
    shape: Mapping[str, Any]
    jobs: int = JOBS
    load: float = LOAD
    gpus: int = GPUS

    def settings(self) -> dict[str, Any]:
        """What the generator is given."""
        if self.stretched:
            return {"jobs": self.jobs, "load": self.load, "gpus": self.gpus, **self.shape}
        work = work_per_job(WorkloadSettings.read({"jobs": 1, "jobs_per_hour": 1, **self.shape}))
        return {"jobs": self.jobs, "jobs_per_hour": self.load * self.gpus / work * 3600.0, **self.shape}


WORKLOADS = {"load 0.9 in every seed": Workload(True, SHAPE), "load drawn around 0.9": Workload(False, SHAPE)}


def policies_of(names: tuple[str, ...]) -> dict[str, Policy | str]:
    """Policies by the names of this study."""
    return {name: RandomOrder(int(name.split()[1])) if name.startswith("equal") else name for name in names}


def draw_population(workload: Workload, names: tuple[str, ...], seeds: range) -> dict[str, Floats]:
    """Every policy on the jobs of every seed."""
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    for seed in seeds:
        trace = generate("generic", seed=seed, **workload.settings())
        for name, policy in policies_of(names).items():
            summary = simulate(trace, CLUSTER, policy).summary
            found[name].append([summary["average_jct"], summary["p95_jct"], summary["makespan"]])
    return {name: np.array(values) for name, values in found.items()}
