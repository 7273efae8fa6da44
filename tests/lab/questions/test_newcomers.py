"""Others may come, as they came in the past: a forecast says whether it counts on that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gantline.cli.main import main
from gantline.core.errors import RefusedError
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.questions.asked import answer
from gantline.lab.questions.newcomers import like_the_past
from gantline.models.uncertainty import Uncertainty
from gantline.policies.registry import make_policy

PAST = [{"job": str(k), "arrival": 20.0 * k, "gpus": 2, "duration": 10.0, "user": "ann"} for k in range(12)]  # half of the machine's time
NOW = {"now": 1000, "cluster": "1x2", "jobs": [{"id": "long", "gpus": 2, "estimate": 400, "service": 0, "devices": [0, 1]}]}
ASK: dict[str, Any] = {"ask": "forecast", "snapshot": NOW, "settings": {}, "sigma": 0.0, "samples": 3}


def finish(policy: str, **more: Any) -> float:
    return float(answer({**ASK, "policy": policy, **more})["jobs"][0]["finish_p50"])


def test_newcomers_pass_a_long_job_where_the_policy_lets_them() -> None:
    assert finish("srtf") == finish("fifo") == pytest.approx(1400.0)
    assert finish("fifo", newcomers=PAST) == pytest.approx(1400.0), "whoever comes later waits"
    # every 20 s somebody of 10 s passes, until what is left is less than that
    assert finish("srtf", newcomers=PAST) == pytest.approx(1400.0 + 10.0 * 40, abs=30.0)


def test_an_answer_says_which_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer({**ASK, "policy": "fifo"})["over"] == "work by estimates taken as true, no new jobs"
    told = answer({**ASK, "policy": "fifo", "newcomers": PAST})
    assert "with newcomers as in the past" in told["over"]
    assert told["lines"][-1].endswith("with newcomers as in the past")
    (tmp_path / "now.json").write_text(json.dumps(NOW), encoding="utf-8")
    (tmp_path / "past.csv").write_text(
        "job,arrival,gpus,duration\n" + "".join(f"{one['job']},{one['arrival']},2,10\n" for one in PAST), encoding="utf-8"
    )
    asked = ["--snapshot", str(tmp_path / "now.json"), "--present", "srtf", "--samples", "2"]
    for verb in (["forecast"], ["what-if", "--policy", "fifo"]):
        assert main([*verb, *asked, "--newcomers", str(tmp_path / "past.csv")]) == 0
        assert "with newcomers as in the past" in capsys.readouterr().out
    assert main(["forecast", *asked, "--newcomers", "past"]) == 2
    assert "name a table of jobs" in capsys.readouterr().err


def test_they_come_in_blocks_with_the_gaps_that_there_were() -> None:
    """Bursts stay bursts: gaps of one second within, of a hundred between."""
    burst = [{"job": str(k), "arrival": 100.0 * (k // 4) + k % 4, "gpus": 8, "duration": 5.0 + k} for k in range(16)]
    coming = like_the_past(burst, decode_snapshot(NOW), make_policy("fifo"), Uncertainty(0.3))
    assert coming.span == pytest.approx(800.0)
    found = coming(np.random.default_rng(1))
    times = [one.time for one in found]
    assert times == sorted(times)
    assert 1000.0 < times[0] <= times[-1] <= 1800.0
    assert {round(gap) for gap in np.diff(times)} <= {1, 20, 97}, "the first has the mean of all gaps before it"
    assert {one.job["gpus"] for one in found} == {2}, "as many as there are"
    assert all(one.work != one.job["estimate"] for one in found)
    assert [one.time for one in coming(np.random.default_rng(1))] == times


@pytest.mark.parametrize(("past", "told"), [(PAST[:9], "only 9 jobs are known"), ([{**one, "arrival": 5.0} for one in PAST], "at once")])
def test_a_past_that_says_nothing_is_refused(past: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(RefusedError, match=told):
        finish("fifo", newcomers=past)


def test_a_look_shows_how_often_jobs_come_lately() -> None:
    """One came every hundred seconds, and since a while every ten; what is known of them is their limit."""
    arrivals = [*(100.0 * k for k in range(40)), *(4000.0 + 10.0 * k for k in range(50))]
    look = [{"arrival": at, "gpus": 1, "estimate": 60.0} for at in arrivals]
    now = {**NOW, "now": 4500, "jobs": [{"id": "long", "gpus": 2, "estimate": 500}]}
    coming = like_the_past(look, decode_snapshot(now), make_policy("fifo"), Uncertainty(ratios=(0.5,) * 20))
    futures = [coming(np.random.default_rng(seed)) for seed in range(40)]
    counts = [len(one) for one in futures]
    assert min(counts) < 40 < 90 < max(counts), "as on average over all of it, and as lately"
    assert {(one.job["estimate"], one.work) for one in futures[0]} == {(60.0, 30.0)}
    assert all(
        one.time <= 4700.0 for one in like_the_past(look, decode_snapshot(now), make_policy("fifo"), until=4600.0)(np.random.default_rng(0))
    )


def test_a_quiet_spell_up_to_now_counts_among_the_gaps() -> None:
    """Twelve came within two minutes, and nobody in the half hour since: the next half hour does not bring one every ten seconds."""
    look = [{"arrival": 10.0 * k, "gpus": 1, "estimate": 60.0} for k in range(12)]
    now = {**NOW, "now": 1910, "jobs": [{"id": "long", "gpus": 2, "estimate": 900}]}
    coming = like_the_past(look, decode_snapshot(now), make_policy("fifo"))
    assert coming.span == pytest.approx(1800.0)
    assert np.mean([len(coming(np.random.default_rng(seed))) for seed in range(40)]) < 60


def test_newcomers_come_within_a_horizon_that_begins_now() -> None:
    """A service that has run for as long as the horizon expects as many as one that looks ahead without end."""
    assert finish("srtf", newcomers=PAST, horizon=1000.0) == finish("srtf", newcomers=PAST) > 1700.0
