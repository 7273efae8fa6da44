"""`--regime irfsim` and the plain re-implementation of IRFsim end every job of AlloX' trace in the same second.

The test takes the first jobs; ``python -m tests.systems.allox.test_irfsim_trace`` compares all 10,000, which takes minutes.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.oracles.irfsim import IRFsim, load
from tests.simulator.references import one_in
from tests.systems.allox import reference
from tests.systems.allox.test_irfsim import PLAIN, cluster, ends, run_like_original

from gantline.systems.allox.importer import read
from gantline.traces.trace import Trace

TRACE = "trace_google_m1_10000.csv"
METHODS = [method for method in PLAIN if method != "AlloX"]


def both(file: Path, method: str, jobs: int) -> tuple[dict[int, float], dict[int, float]]:
    """When each of the first jobs ends: in the regime, and plainly."""
    run = run_like_original(Trace(read(file).frame.head(jobs)), cluster(20, 20, 32), method, 0.1)
    plain = IRFsim(load(file)[:jobs], PLAIN[method], gpus=20, alpha=0.1, profiling=method != "DRFFIFO").run()
    return ends(run), {job.job: job.end for job in plain}


@pytest.mark.parametrize("method", one_in(4, METHODS))
def test_the_first_jobs_of_the_trace_end_in_the_same_second(method: str) -> None:
    mine, plain = both(reference.path(TRACE), method, 700)
    assert len(mine) == 700
    assert mine == plain


def compare_all() -> None:
    """Print, for every method, how many of all jobs end in the same second, and the mean."""
    file = reference.FOLDER / TRACE
    jobs = pl.read_csv(file).height
    for method in METHODS:
        mine, plain = both(file, method, jobs)
        equal = sum(end == plain[job] for job, end in mine.items())
        print(f"{method:<10}{equal:>7} of {jobs} jobs end in the same second", flush=True)


if __name__ == "__main__":
    compare_all()
