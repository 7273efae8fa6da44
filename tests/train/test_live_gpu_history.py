"""What live runs say of profiles: made-up runs whose starts, ends and speeds are known, and what is read from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gantline.performance.bundle import Bundle, Profile, Speed
from gantline.performance.sampled_line import SampledLine

PLACE = Path(__file__).parents[2] / "examples" / "live_gpu"
LATE, SLOW, LINGERS = 0.5, {"a": 0.8, "b": 1.1}, 0.25  # seconds that a start takes longer, speed over the profile's, a longer end
RATE, START, RESUME, LEAVE, CROWDED = 100.0, 2.0, 1.5, 0.2, 0.6
TYPES = ["gpu"] * 4


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of the experiment."""
    monkeypatch.syspath_prepend(str(PLACE))
    import history

    import live

    yield history, live
    for name in ("history", "live", "workload"):
        sys.modules.pop(name, None)


def profiles() -> Bundle:
    speed = Speed(
        SampledLine(START + LEAVE, 1.0 / RATE, 0.9 / RATE, 1.1 / RATE),
        leave=LEAVE,
        resume=RESUME,
        crowded=CROWDED,
        samples={"start": (START + LEAVE,), "resume": (RESUME,), "leave": (LEAVE,)},
    )
    return Bundle({kind: Profile(kind, alone={("gpu", 1): speed}) for kind in SLOW})


def life(at: float, kind: str, begins: float, busy: float, seconds: float) -> list[float]:
    """First and last note of an incarnation which begins so long after its order."""
    speed = RATE * SLOW[kind] * (1.0 - (1.0 - CROWDED) * busy)
    return [at + begins + 1.0 / RATE, 1, at + begins + 1.0 / RATE + seconds, 1 + round(speed * seconds)]


def lonely_run() -> dict[str, Any]:
    """Forty jobs, one after the other; every fourth is stopped once."""
    jobs, orders, at = [], [], 0.0
    for place in range(40):
        kind, came = "ab"[place % 2], at
        steps = [life(at, kind, START + LATE, 0.0, 10.0)]
        orders.append({"time": at, "order": "start", "job": place, "devices": [0]})
        if place % 4 == 0:
            orders.append({"time": steps[0][2], "order": "stop", "job": place, "devices": [0]})
            at = steps[0][2] + 5.0
            orders.append({"time": at, "order": "start", "job": place, "devices": [1]})
            steps.append(life(at, kind, RESUME + 2 * LATE, 0.0, 10.0))
        at = steps[-1][2] + LEAVE + LINGERS
        jobs.append({"kind": kind, "gpus": 1, "arrival": came, "jct": at - came, "steps": steps})
    return {"jobs": jobs, "orders": orders}


def crowded_run() -> dict[str, Any]:
    """Two jobs beside each other for the whole time of their steps: one of three other devices is busy for each."""
    steps = [life(0.0, kind, START, 1 / 3, 10.0) for kind in "ab"]
    jobs = [{"kind": kind, "gpus": 1, "arrival": 0.0, "jct": 30.0, "steps": [one]} for kind, one in zip("ab", steps)]
    return {"jobs": jobs, "orders": [{"time": 0.0, "order": "start", "job": job, "devices": [job]} for job in range(2)]}


def test_starts_resumes_ends_and_speeds_of_runs_are_told_apart(example: Any) -> None:
    history, _ = example
    found = history.refined(profiles(), [lonely_run()], [], TYPES)
    for kind, faster in SLOW.items():
        speed = found[kind].alone["gpu", 1]
        assert speed.line.startup == pytest.approx(START + LEAVE + LATE + LINGERS)
        assert speed.samples["start"] == pytest.approx((START + LEAVE + LATE + LINGERS,))
        assert speed.resume == pytest.approx(RESUME + 2 * LATE)
        assert speed.line.rate == pytest.approx(RATE * faster, rel=1e-3)
    assert len(found.lives) == 50
    assert found.lives == pytest.approx([1.0] * 50, abs=1e-3)


def test_speeds_are_held_against_the_profile_in_the_same_company(example: Any) -> None:
    history, _ = example
    seen = history.seen_in(crowded_run(), profiles(), TYPES)
    assert {kind: values[0] for kind, values in seen.speeds.items()} == pytest.approx(SLOW, rel=1e-3)


def test_a_run_without_notes_shows_no_parts(example: Any) -> None:
    history, _ = example
    run = lonely_run()
    bare = {**run, "jobs": [{name: value for name, value in job.items() if name != "steps"} for job in run["jobs"]]}
    seen = history.seen_in(bare, profiles(), TYPES)
    assert (seen.seconds, seen.speeds) == ({}, {})


def test_notes_of_steps_are_split_where_a_process_counts_anew(example: Any, tmp_path: Path) -> None:
    _, live = example
    log = tmp_path / "steps"
    log.write_text("100.5 1\n101.0 20\n109.0 3\n109.5 30\n")
    assert live.incarnations(log, 100.0) == [[0.5, 1, 1.0, 20], [9.0, 3, 9.5, 30]]
    assert live.incarnations(tmp_path / "none", 100.0) == []
