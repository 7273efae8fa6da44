"""The cluster and the jobs of Blox' simulations (EuroSys 2024, section 5): 128 GPUs, Philly-like jobs, jobs 3000 to 4000."""

from __future__ import annotations

import polars as pl

from gantline.lab.experiment.reproduction import Scale
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource

LOAD = "trace.jobs_per_hour"


def blox_setting(scale: Scale) -> Setting:
    """Blox' default workload, the jobs of its seed 1, measured and timed as Blox does; the small scale ends after 1000 jobs."""
    jobs, track = (12_000, (3000, 4000)) if scale == "full" else (3000, (800, 1000))
    source = TraceSource(generator="blox", settings={"jobs": jobs, "list_jobs": jobs}, seed=1)
    return Setting(source, "32x4", "fifo", regime="blox", track=track)


def figure_table(results: pl.DataFrame, lines: str) -> pl.DataFrame:
    """Average JCT in hours and responsiveness in seconds, a row per load, a column per line of the figure."""
    return (
        results.with_columns(hours=pl.col("jct_mean") / 3600)
        .rename({LOAD: "jobs/h"})
        .pivot(lines, index="jobs/h", values=["hours", "responsiveness_mean"])
        .rename(lambda name: name.replace("hours_", "JCT h ").replace("responsiveness_mean_", "resp. s ").replace("load-", ""))
    )
