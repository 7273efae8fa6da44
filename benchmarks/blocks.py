"""A trace that is longer than memory: CPU seconds and peak memory of a run in blocks.

    python -m benchmarks blocks [--jobs 1000000] [--block 250000] [--policy srtf]

SRTF on 12500x8 GPUs at load 0.8, consolidated, 60 s rounds, from a Parquet file to the summary and a Parquet file of jobs. The trace is
generated in a process of its own, so that only the run counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from pathlib import Path

from benchmarks._growth import in_blocks, written
from benchmarks._measure import machine


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks blocks")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--block", type=int, default=250_000)
    parser.add_argument("--policy", default="srtf")
    options = parser.parse_args(arguments)
    print(f"# {machine()}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.parquet"
        for action, given in ((written, (path, options.jobs)), (in_blocks, (path, options.block, options.policy))):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(action, given)  # type: ignore[operator]
    assert found is not None
    seconds, decisions, memory = found
    told = f"{1e6 * seconds / options.jobs:.1f} us/job, {decisions:,} decisions, peak {memory:,.0f} MB"
    print(f"{options.jobs:,} jobs in blocks of {options.block:,}: {seconds:.1f} s, {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
