"""The cluster and the jobs of AlloX' simulations (EuroSys 2020, section 6): GPUs and CPU nodes, ten users, estimates that err."""

from __future__ import annotations

from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource

USERS = tuple(f"user{number:02d}" for number in range(1, 11))
RATE = "trace.jobs_per_hour"


def allox_setting(jobs: int, *, rate: float = 2400.0, skew: float = 0.0) -> Setting:
    """Twenty GPUs and twenty CPU nodes; the workload is generated, with estimates off by a tenth."""
    source = TraceSource(generator="hybrid", settings={"jobs": jobs, "jobs_per_hour": rate, "skew": skew})
    return Setting(source, machines(20), "allox", estimates="declared")


def machines(of_each: int) -> str:
    """So many GPUs and so many CPU nodes."""
    return f"gpu:{of_each}x1/2c/64g,cpu:{of_each}x0/32c/64g"
