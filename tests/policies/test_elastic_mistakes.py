"""What people get wrong about elastic jobs: told with the job and the line, or worked around without losing a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.jobs import by_job

from gantline import simulate
from gantline.cli.main import main
from gantline.core.errors import GantlineError

ELASTIC = ("afs", "equal-share", "ffdl", "optimus", "lyra", "elasticflow", "voda.elastic_fifo", "voda.elastic_tiresias", "voda.afs_l")


def job(name: str, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": 2, "duration": 100.0, **more}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"min_gpus": 4, "max_gpus": 3}, "min_gpus 4 is above the 2 GPUs asked for"),
        ({"min_gpus": 1, "max_gpus": 1}, "max_gpus 1 is below the 2 GPUs asked for"),
        ({"options": "gpu:2=-5"}, "not a list of alternatives"),
        ({"options": "gpu:2=0"}, "takes 0 s"),
        ({"deadline": -1.0}, "deadline -1 is before the arrival"),
        ({"batch_size": 512, "scaling": "sample=0.1;batch=512-1024;local=64"}, "a batch of 512 does not fit on the 2 GPUs"),
        ({"batch_size": 8, "scaling": "sample=0.1;batch=64-16"}, "batch 8 is not within 64-16"),
    ],
)
def test_a_contradiction_is_told_with_its_job_and_line(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(GantlineError, match=told) as found:
        simulate([job("good"), job("bad", **wrong)], "gpu:1x4", "afs")
    assert any(place in str(found.value) for place in ("records:2:", ":3"))  # the second record, the third line


def test_the_command_line_tells_it_in_one_line_and_keeps_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "jobs.csv"
    text = "job,arrival,gpus,duration,min_gpus,max_gpus\na,0,2,100,1,4\nb,0,2,100,3,4\n"
    path.write_text(text, encoding="utf-8")
    assert main(["simulate", str(path), "--cluster", "gpu:1x4", "--policy", "afs"]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert "jobs.csv:3" in told[0]
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("policy", ELASTIC)
def test_more_than_the_cluster_has_is_cut_to_it(policy: str) -> None:
    run = simulate([job("a", max_gpus=64), job("b", max_gpus=16)], "gpu:1x4", policy)
    assert run.summary["completed"] == 2
    assert run.allocations["gpus"].max() <= 4


@pytest.mark.parametrize("policy", ELASTIC)
def test_tables_with_gaps_and_falling_speeds_are_used_as_they_are(policy: str) -> None:
    """Sizes 1, 2 and 5, of which the last is slower than the second: nobody is given a size that is not listed, nor one that loses."""
    table = "gpu:2=100|gpu:1=180|gpu:5=120"
    run = simulate([job("a", min_gpus=1, max_gpus=5, options=table), job("b", min_gpus=1, max_gpus=5, options=table)], "gpu:1x8", policy)
    assert run.summary["completed"] == 2
    assert set(run.allocations["gpus"].to_list()) <= {1, 2, 5}
    if policy not in ("equal-share", "voda.elastic_fifo"):  # these two share out whatever there is
        assert 5 not in run.allocations["gpus"].to_list()


def test_a_deadline_that_cannot_be_met_is_refused_with_an_offer_and_the_others_run() -> None:
    run = simulate([job("late", deadline=10.0), job("good", deadline=500.0)], "gpu:1x4", "elasticflow")
    assert {one.row: one.offer for one in run.refusals}.keys() == {0}
    assert run.refusals[0].offer["deadline"] >= 50.0
    assert by_job(run, "state") == {"late": "rejected", "good": "completed"}


def test_a_job_that_no_size_of_the_cluster_can_hold_is_named() -> None:
    with pytest.raises(GantlineError, match="job 'wide' asks for 8 GPUs and can never run"):
        simulate([job("a"), job("wide", gpus=8)], "gpu:1x4", "afs")
