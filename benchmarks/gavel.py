"""Every recorded run of Gavel's artifact again: how far off, and how much faster.

Prints one row per run: average JCT and makespan (hours) of the artifact, how far ours are from them, the largest difference of
any single job, rounds of both, CPU seconds of both and their ratio. Reading the trace and the throughput table is not counted,
as the artifact's imports were not.

    python -m benchmarks gavel [--data ../shared/reference/gavel] [--only big_single]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import polars as pl

from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.simulator.simulate import simulate
from gantline.traces.files.speeds import read_throughputs
from gantline.traces.generators import generate
from gantline.traces.importers import import_trace
from gantline.traces.trace import Trace

GENERATED = {
    "big_single_1000_lam900": {"jobs": 1000, "mean_gap": 900.0},
    "paper_point_single_lam900_4000_5000": {"jobs": 6000, "mean_gap": 900.0},
    "rounds_gen": {"jobs": 150, "mean_gap": 7200.0},
}
TRACES = {"official_las_96": "official_max_min_fairness", "official_makespan_100": "official_minimize_makespan"}
TRACKED = {"paper_point_single_lam900_4000_5000": (4000, 5000), "rounds_gen": (20, 60)}


class Recorded:
    """The artifact's files."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.runs = pl.read_csv(data / "results/summary.csv").sort("workload", "policy")
        self.jobs = pl.read_csv(data / "results/per_job_jct.csv", schema_overrides={"jct_s": pl.Float64})
        self.table: Callable[[str], ThroughputTable] = cache(lambda name: read_throughputs(data / "throughputs" / name))
        self.trace: Callable[[str, str], Trace] = cache(self._trace)

    def _trace(self, workload: str, table: str) -> Trace:
        speeds = self.data / "throughputs" / table
        if workload in GENERATED:
            return generate("gavel", seed=0, throughputs=str(speeds), **GENERATED[workload])
        return import_trace("gavel", self.data / f"traces/{TRACES.get(workload, workload)}.trace", {"throughputs": speeds})

    def times(self, workload: str, policy: str) -> pl.DataFrame:
        return self.jobs.filter((pl.col("workload") == workload) & (pl.col("policy") == policy)).drop_nulls("jct_s")


def cluster_of(row: dict[str, Any]) -> str:
    """The cluster in words: ``v100:3x4`` are three servers of four."""
    sizes, groups = (list(map(int, row[name].split(":"))) for name in ("cluster", "gpus_per_server"))
    return ",".join(f"{name}:{size // group}x{group}" for name, size, group in zip(("v100", "p100", "k80"), sizes, groups))


def again(recorded: Recorded, row: dict[str, Any]) -> dict[str, Any]:
    """One run, held against its record."""
    workload, policy = row["workload"], row["policy"]
    jobs, table = recorded.trace(workload, row["throughputs"]), recorded.table(row["throughputs"])
    variant: dict[str, Any] = {"settings": {"compat": "gavel"}, "regime": "gavel", "throughputs": table, "track": TRACKED.get(workload)}
    began = process_time()
    run = simulate(jobs, cluster_of(row), f"gavel.{policy}", **variant)
    spent = process_time() - began
    found = run.jobs.filter(pl.col("state") == "completed").select(pl.col("job").cast(pl.Int64), "jct")
    both = recorded.times(workload, policy).join(found, left_on="job_id", right_on="job")
    told = run.summary
    return {
        "workload": workload,
        "policy": policy,
        "JCT h": row["avg_jct_s"] / 3600,
        "off %": 100 * (told["average_jct"] / row["avg_jct_s"] - 1),
        "makespan h": row["makespan_s"] / 3600,
        "off % ": 100 * (told["end"] / row["makespan_s"] - 1),
        "worst job s": (both["jct"] - both["jct_s"]).abs().max(),
        "rounds": row["rounds"],
        "ours": told["rounds"],
        "CPU s": row["cpu_s"],
        "ours ": spent,
        "ratio": row["cpu_s"] / spent,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/reference/gavel"))
    parser.add_argument("--only", default="", help="runs whose workload or policy contains this")
    given = parser.parse_args()
    if not (given.data / "results/summary.csv").is_file():
        print(f"left out: no recorded runs under {given.data}; give their folder with --data")
        return
    recorded = Recorded(given.data)
    rows = [row for row in recorded.runs.iter_rows(named=True) if given.only in f"{row['workload']} {row['policy']}"]
    again(recorded, rows[0])  # compile and load
    heads: list[str] = []
    for row in rows:
        found = again(recorded, row)
        if not heads:
            heads = list(found)
            print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
        cells = [f"{value:{'+' if 'off' in name else ''}.2f}" if isinstance(value, float) else str(value) for name, value in found.items()]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
