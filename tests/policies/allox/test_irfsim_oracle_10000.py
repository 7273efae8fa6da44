"""The re-implementation of IRFsim agrees with the committed results of the original on 10,000 jobs."""

from __future__ import annotations

import pytest
from tests.oracles.irfsim import IRFsim, Method, load
from tests.oracles.irfsim_methods import allox_plus, drf, drf_ext, drf_fifo, equal_share, sjf, srpt
from tests.policies.allox import reference

METHODS: dict[str, Method] = {
    "DRFFIFO": drf_fifo,
    "DRF": drf,
    "ES": equal_share,
    "DRFExt": drf_ext,
    "SJF": sjf,
    "SRPT": srpt,
    "AlloXPlus": allox_plus,
}


@pytest.mark.parametrize("name", METHODS)
def test_means_and_percentiles_agree_to_the_last_digit(name: str) -> None:
    expected = next(row for row in reference.rows("irfsim_committed_results.csv") if row["method"] == name and row["full_jobs"] == "10000")
    tasks = load(reference.path("trace_google_m1_10000.csv"))
    jobs = IRFsim(tasks, METHODS[name], gpus=20, profiling=name != "DRFFIFO").run()
    times = sorted(job.jct for job in jobs)
    assert round(sum(times) / len(times), 2) == float(expected["avg_jct_s"])
    for share, column in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        assert times[int(share * len(times))] == float(expected[column])
    assert times[-1] == float(expected["max"])
    assert max(job.end for job in jobs) == float(expected["makespan_s"])
