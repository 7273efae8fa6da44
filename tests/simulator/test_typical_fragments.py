"""Fragmentation over the typical mix in the summary of a run, by hand on small clusters."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from tests.jobs import job_row

from gantline import simulate
from gantline.lab.report.metrics import Window, measure
from gantline.lab.report.rundir import read_run, write_run

HALF_AND_PAIR = [
    job_row("half", 1, 10.0, gpu_demand=0.5),
    job_row("pair", 2, 10.0, gpu_demand=2.0),
]


def told(jobs: list[dict[str, Any]], cluster: str, policy: str = "sharing", **more: Any) -> float:
    found = simulate(jobs, cluster, policy, **more).summary["typical_fragmentation"]
    assert isinstance(found, float)
    return found


def test_half_of_what_is_free_is_lost_to_a_pair() -> None:
    # 0 to 10 s: 1.5 of two GPUs are free, of which the half can use all and the pair nothing; then the pair holds both
    assert told(HALF_AND_PAIR, "1x2") == pytest.approx(0.5)
    # beside it a node of two more, which the pair takes at once: 1.5 are free for 10 s
    assert told(HALF_AND_PAIR, "2x2") == pytest.approx(0.5)


def test_a_policy_that_shares_nothing_holds_whole_gpus() -> None:
    # 0 to 10 s: one GPU is free, of use to the half alone
    assert told(HALF_AND_PAIR, "1x2", "fifo") == pytest.approx(0.5)
    quarter = [job_row("quarter", 1, 10.0, gpu_demand=0.25), *HALF_AND_PAIR]
    # a half, a quarter and a pair in the mix; 1.25 are free for 10 s with sharing, and none is without it
    assert told(quarter, "1x2") == pytest.approx((1.25 / 3 + 0.25 / 3) / 1.25)
    assert told(quarter, "1x2", "fifo") == 0.0


def test_free_gpus_without_cpus_are_fragments() -> None:
    hungry = [job_row("a", 1, 10.0, gpu_demand=0.5, cpus=6)]
    assert told(hungry, "1x2/8c") == 1.0
    assert told(hungry, "1x2/16c") == 0.0


def test_plain_runs_do_not_count_it() -> None:
    run = simulate([job_row("a", 1, 10.0)], "1x2", "fifo")
    assert "typical_fragmentation" not in run.summary


def test_reports_have_it_beside_the_one_over_waiting_jobs(tmp_path: Path) -> None:
    run = simulate(HALF_AND_PAIR, "1x2", "sharing")
    write_run(run, tmp_path / "run")
    for each in (run, read_run(tmp_path / "run")):
        found = measure(each)
        assert (found["fragmentation"], found["typical_fragmentation"]) == pytest.approx((1.0, 0.5))
    assert math.isnan(measure(run, window=Window(0, 1))["typical_fragmentation"])  # known of the whole run alone
