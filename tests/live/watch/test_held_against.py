"""Forecasts beside Slurm are held against starts: which count, and what they are made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.live.watch.recordings import NOW, job, recording

from gantline.cli.main import main
from gantline.live.watch.held_against import HeldForecasts, hold_against
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import read_state

PAST = "JobID|User|Partition|Submit|Start|ElapsedRaw|Timelimit|State|AllocTRES|ReqTRES|NNodes|Priority"
FULL = [job(f"9{k}", 4, ran=60, hosts=f"node{k}", limit="0:10:00") for k in range(3)]


def _kept(folder: Path, *looks: tuple[int, list[str], str]) -> HeldForecasts:
    """Recordings so many seconds from now, of jobs and of accounting."""
    for seconds, jobs, past in looks:
        text = recording(jobs, time=f"{NOW + seconds} +0000", past=f"{PAST}\n{past}")
        (folder / f"{NOW + seconds}.txt").write_text(text, encoding="utf-8")
    return hold_against(folder)


def test_a_job_that_came_and_went_between_two_looks_counts_where_accounting_knows_its_start(tmp_path: Path) -> None:
    ended = f"7|ann|main|{NOW}|{NOW + 5}|20|00:10:00|COMPLETED|cpu=1,gres/gpu=4|cpu=1,gres/gpu=4|1|1"
    assert _kept(tmp_path, (0, [*FULL, job("7", 4)], ""), (3600, [], ended)) == HeldForecasts(1, 1, 1, 1, 1, 0, 0, 2)


def test_a_job_whose_start_nothing_shows_is_left_out_and_reported(tmp_path: Path) -> None:
    held = _kept(tmp_path, (0, [*FULL, job("7", 4)], ""), (3600, [job("8", STATE="CANCELLED")], ""))
    assert (held.forecasts, held.gone) == (0, 1)
    assert "1 more jobs were gone" in held.lines()[-1]


def test_accounting_that_does_not_say_when_a_job_started_shows_no_start(tmp_path: Path) -> None:
    ended = f"7|ann|main|{NOW}||20|00:10:00|COMPLETED|cpu=1,gres/gpu=4|cpu=1,gres/gpu=4|1|1"
    held = _kept(tmp_path, (0, [*FULL, job("7", 4)], ""), (3600, [], ended))
    assert (held.forecasts, held.gone) == (0, 1)


def test_a_job_that_waits_beyond_its_p90_counts_as_late_and_before_it_as_open(tmp_path: Path) -> None:
    for name in ("late", "open"):
        (tmp_path / name).mkdir()
    waits = [*FULL, job("7", 4)]
    assert _kept(tmp_path / "late", (0, waits, ""), (3600, waits, "")) == HeldForecasts(1, 0, 0, 1, 0, 0, 0, 2)
    assert _kept(tmp_path / "open", (0, waits, ""), (30, waits, "")) == HeldForecasts(0, 0, 0, 0, 0, 1, 0, 2)


def test_an_early_start_is_not_due_before_its_p90_and_a_note_counts_those_that_are(tmp_path: Path) -> None:
    held = _kept(tmp_path, (0, [*FULL, job("7", 4)], ""), (30, [job("7", 4, ran=10, hosts="node0")], ""))
    assert (held.forecasts, held.by_p90, held.due) == (1, 1, 0)
    assert held.lines()[1] == "note: of 0 whose P90 has passed, 0 came by it"


@pytest.fixture
def busy(tmp_path: Path) -> str:
    """A large job waits for two full nodes, and every minute another small one comes, which is more urgent."""
    urgent = [job(f"1{k}", 2, waited=60 * k, PRIORITY="5000", limit="0:05:00") for k in range(5)]
    ended = [f"{k}|ann|main|{NOW - 60 * k}|{NOW - 60 * k}|150|00:05:00|COMPLETED|gres/gpu=2|gres/gpu=2|1|5000" for k in range(5, 30)]
    (tmp_path / "now.txt").write_text(recording([*FULL, job("7", 4, NODES="2"), *urgent], past="\n".join([PAST, *ended])))
    return f"slurm:{tmp_path / 'now.txt'}"


def test_others_come_as_the_latest_did_unless_they_are_left_out(busy: str, capsys: pytest.CaptureFixture[str]) -> None:
    starts = []
    for more in ([], ["--newcomers", "past"], ["--newcomers", "none"]):
        assert main(["forecast", "7", "--watch", busy, "--draws", "2", "-o", "json", *more]) == 0
        starts.append(json.loads(capsys.readouterr().out)["jobs"][0]["start_p90"])
    assert starts[0] == starts[1] > starts[2] + 30
    assert main(["forecast", "7", "--watch", busy, "--draws", "1"]) == 0
    assert "with newcomers as in the past" in capsys.readouterr().out


def test_a_look_with_few_jobs_does_not_say_how_others_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "now.txt").write_text(recording([*FULL, job("7", 4)]))
    asked = ["forecast", "--watch", f"slurm:{tmp_path / 'now.txt'}", "--draws", "1"]
    assert main(asked) == 0
    assert "no new jobs" in capsys.readouterr().out
    assert main([*asked, "--newcomers", "past"]) == 2
    assert "too few jobs are known" in capsys.readouterr().err


def test_an_array_is_one_submission_and_does_not_hide_those_before_it() -> None:
    alone = [job(str(k), waited=100 + k) for k in range(30)]
    array = [job(f"99_{k}") for k in range(1000)]
    arrivals = watched(read_state(recording([*alone, *array]))).arrivals
    assert len(arrivals) == 1030
