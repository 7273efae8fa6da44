"""How long the Gantt picture takes: a million intervals on 20,000 GPUs, against drawing one bar per interval.

python benchmarks/gantt_raster.py [--intervals N] [--gpus N]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from gantline.lab.report.figures import gantt
from gantline.lab.report.figures.for_page import figure
from gantline.lab.report.figures.with_matplotlib import save
from gantline.lab.report.frames import ALLOCATIONS, EVENTS, JOBS, SERIES, StoredRun


def filled_cluster(intervals: int, gpus: int, seed: int = 0) -> StoredRun:
    """A cluster on which every GPU is held by one short interval after the other."""
    rng = np.random.default_rng(seed)
    per_gpu = max(1, intervals // gpus)
    edges = np.sort(rng.uniform(0, 30 * 86400, (gpus, per_gpu + 1)), axis=1)
    start, end = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    device = np.repeat(np.arange(gpus, dtype=np.int32), per_gpu)
    job = pl.Series(np.arange(start.size) // 4).cast(pl.String)
    held = pl.DataFrame(
        {"job": job, "start": start, "end": end, "type": "gpu", "nodes": device // 8, "devices": device, "gpus": 1}
    ).with_columns(pl.col("nodes", "devices").reshape((-1, 1)).arr.to_list(), reason=pl.lit("finished"))
    jobs = pl.DataFrame({name: [] for name in JOBS}, schema=JOBS)
    names = job.unique(maintain_order=True)
    users = pl.DataFrame({"job": names, "user": [f"user{i % 50}" for i in range(names.len())], "arrival": 0.0, "gpu_seconds": 1.0})
    jobs = pl.concat([jobs, users], how="diagonal")
    both = {"time": [0.0, 30 * 86400.0], "total_gpus": [float(gpus)] * 2}
    series = pl.DataFrame({name: both.get(name, [0.0, 0.0]) for name in SERIES}).cast(dict(SERIES))
    return StoredRun(jobs, held.cast(dict(ALLOCATIONS)), pl.DataFrame(schema=EVENTS), series)


def bars_one_by_one(held: pl.DataFrame, path: Path) -> None:
    """What a plotting library does when asked for a bar per interval."""
    axes = (canvas := Figure(figsize=(7.2, 4))).subplots()
    devices = held["devices"].explode().to_numpy()
    axes.barh(devices, (held["end"] - held["start"]).to_numpy(), left=held["start"].to_numpy())
    canvas.savefig(path)


def seconds(act: object) -> float:
    """How long a call takes, the better of two."""
    best = float("inf")
    for _ in range(2):
        began = time.perf_counter()
        act()  # type: ignore[operator]
        best = min(best, time.perf_counter() - began)
    return best


def main() -> None:
    """Print the times and the ratio to a bar per interval, which is measured on a hundredth of them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--intervals", type=int, default=1_000_000)
    options.add_argument("--gpus", type=int, default=20_000)
    chosen = options.parse_args()
    run = filled_cluster(chosen.intervals, chosen.gpus)
    few = run.allocations.sample(max(1, run.allocations.height // 100), seed=0)
    gantt(filled_cluster(2000, 100))  # compiled once per machine, then cached
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gantt.png"
        by_job = seconds(lambda: gantt(run))
        by_user = seconds(lambda: gantt(run, "user"))
        chart = gantt(run, "user")
        png = seconds(lambda: save(chart, file))
        page = seconds(lambda: figure(chart))
        bars = seconds(lambda: bars_one_by_one(few, file)) * run.allocations.height / few.height
    print(f"{run.allocations.height:,} intervals on {chosen.gpus:,} GPUs")
    print(f"picture by job     {by_job:6.2f} s")
    print(f"picture by user    {by_user:6.2f} s")
    print(f"picture to PNG     {png:6.2f} s   whole figure {by_user + png:.2f} s")
    print(f"picture to a page  {page:6.2f} s   whole figure {by_user + page:.2f} s")
    print(f"a bar per interval {bars:6.0f} s   (from a hundredth)   ratio {bars / (by_user + png):.0f}")


if __name__ == "__main__":
    main()
