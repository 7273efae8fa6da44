"""Numbers that would mislead say so: runs in doubt never win, seeds that change nothing give no interval, free stops are told."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gantline import simulate
from gantline.cli.main import main
from gantline.cli.simulate import LostTurnWords
from gantline.core.facts import Costs
from gantline.engine.policy_failures import Incident
from gantline.lab.report.run_warnings import MARK, free_stops, no_contest

BROKEN = """\
from dataclasses import dataclass
from gantline import Plan, Policy

@dataclass(frozen=True)
class Lucky(Policy):
    def decide(self, snapshot):
        if len(snapshot.jobs) > 2:
            raise ValueError("too much")
        return Plan.rank(snapshot.jobs.arrival)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lucky.py").write_text(BROKEN)
    rows = [f"j{k},{10 * k},1,{30 + 7 * (k % 5)}" for k in range(30)]
    (tmp_path / "jobs.csv").write_text("\n".join(["job,arrival,gpus,duration", *rows]) + "\n")
    return tmp_path


def test_a_run_that_lost_turns_and_jobs_never_wins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["compare", "jobs.csv", "--cluster", "1x1", "--policy", "fifo,lucky.py:Lucky", "--workers", "1", "--out", "kept"])
    told = capsys.readouterr()
    assert code == 1
    assert "decides nothing" in told.out
    assert "beats" not in told.out
    assert MARK in told.out
    assert "decisions were lost" in told.err
    assert "the policy raised ValueError: too much" in told.err
    assert "lucky.py:8" in told.err
    assert "nan" not in told.out
    assert "jobs did not end" in told.err
    results = pl.read_parquet(folder / "kept" / "results.parquet")
    assert results["lost_turns"].to_list()[0] == 0
    assert results["lost_turns"].to_list()[1] > 0
    assert f"{results['unfinished'][1]:.0f} of 30 jobs did not end" in results["doubts"][1]  # most of them had not even arrived
    assert results["jobs"].to_list() == [30, 30]


def test_measured_costs_grow_with_the_gang() -> None:
    """8 GPUs: 4 + 3 x 2 s to start, and 31 + 3 x 2 s to resume after the short job, which itself starts in 4 s."""
    jobs = [{"job": "wide", "arrival": 0, "gpus": 8, "duration": 100}, {"job": "short", "arrival": 50, "gpus": 1, "duration": 10}]
    run = simulate(jobs, "1x8", "srtf", costs="measured")
    ends = dict(run.jobs.select("job", "finish").iter_rows())
    assert ends == {"short": 50 + 4 + 10, "wide": 64 + 37 + (100 - 40)}
    assert not free_stops(run.summary)
    assert Costs.parse("measured").scaled(31.0, 4) == 35.0
    assert Costs.parse("measured").scaled(0.0, 4) == 0.0


def test_a_run_with_some_waiting_elastic_jobs_or_several_types_may_tell_something(folder: Path) -> None:
    assert no_contest(simulate("jobs.csv", "1x1", "fifo").summary) == ""
    assert no_contest(simulate("jobs.csv", "1x4", "las", round=10.0).summary) == ""
    jobs = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 50.0} for k in range(3)]
    assert no_contest(simulate(jobs, "1x4", "fifo").summary)
    assert no_contest(simulate(jobs, "a:1x4,b:1x4", "fifo").summary) == ""
    assert no_contest(simulate([{**job, "max_gpus": 4} for job in jobs], "1x4", "fifo").summary) == ""


def test_a_mistake_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = LostTurnWords()
    for number in range(1, 101):
        words(Incident(float(number), number, "the same mistake" if number != 5 else "another one"))
    told = capsys.readouterr().err
    assert told.count("the same mistake") == 1
    assert told.count("another one") == 1
    assert "10 turns lost" in told
    assert "100 turns lost" in told
