"""Two million rows from a file to a checked trace, beside polars alone: CPU seconds, the least of several, taking turns.

    python -m benchmarks rows [--jobs 2000000]

polars alone reads the same file with the types that it infers, and checks nothing.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

from gantline import Trace

TURNS = 5


def seconds(act: Callable[[], object]) -> float:
    """CPU seconds of all threads; what was made is freed outside of what is timed."""
    gc.collect()
    began = time.process_time()
    made = act()
    spent = time.process_time() - began
    del made
    return spent


def main() -> None:
    """One line per kind of file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=2_000_000)
    jobs = options.parse_args().jobs
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.generate("philly", 0, jobs=jobs, gpus=512, load=0.9)
        files = (trace.save(Path(folder) / "jobs.csv"), trace.save(Path(folder) / "jobs.parquet"))
        del trace
        print(f"{'':<9}{'Trace.load':>11}{'polars':>8}{'ratio':>7}")
        for file, alone in zip(files, (pl.read_csv, pl.read_parquet)):
            turns = [(seconds(partial(Trace.load, file)), seconds(partial(alone, file))) for _ in range(TURNS)]
            ours, theirs = (min(column) for column in zip(*turns))
            print(f"{file.suffix[1:]:<9}{ours:>11.2f}{theirs:>8.2f}{ours / theirs:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
