"""What a comparison, a report and a page cost: six policies on a month of 25,063 jobs, a page of six runs of 100,000 jobs each.

python -m benchmarks.reports [--jobs N] [--month N]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gantline import Trace, simulate
from gantline.lab.report.rundir import write_run

POLICIES = ("fifo", "sjf", "srtf", "srsf", "las", "tiresias")
CLUSTER = "64x8"


def command(*words: str) -> float:
    """CPU seconds of a command, with those of the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "gantline.cli.main", *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def month(jobs: int, file: Path) -> None:
    """One command for all six policies beside a command for each."""
    Trace.generate("philly", 0, jobs=jobs, gpus=512, load=0.9).save(file)
    common = (str(file), "--cluster", CLUSTER, "--round", "60", "--policy")
    together = min(command("compare", *common, ",".join(POLICIES)) for _ in range(3))
    alone = sum(min(command("simulate", *common, name) for _ in range(2)) for name in POLICIES)
    print(f"compare {len(POLICIES)} policies on {jobs:,} jobs: {together:.1f} CPU s; simulate them one by one: {alone:.1f}", flush=True)


def page(jobs: int, runs: Sequence[str], folder: Path) -> None:
    """A page about stored runs: CPU seconds from the command to the file, and its size."""
    trace = Trace.generate("philly", 0, jobs=jobs, gpus=512, load=0.9)
    stored = [str(write_run(simulate(trace, CLUSTER, name, round=60.0), folder / f"{name}-{jobs}")) for name in runs]
    out = folder / "page.html"
    used = min(command("report", *stored, "-o", str(out)) for _ in range(3))
    print(f"a report of {len(runs)} x {jobs:,} jobs: {used:.1f} CPU s, {out.stat().st_size / 1e6:.2f} MB", flush=True)


def main() -> None:
    """Print each in a line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=100_000)
    options.add_argument("--month", type=int, default=25_063)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        month(chosen.month, Path(folder) / "month.csv")
        page(600, POLICIES[:3], Path(folder))
        page(chosen.jobs, POLICIES, Path(folder))


if __name__ == "__main__":
    main()
