"""What live runs say of profiles: made-up runs whose starts, ends and speeds are known, and what is read from them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gantline.models.profiles.bundle import Bundle, Profile, SampledLine, Speed

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


def life(at: float, kind: str, begins: float, busy: float, seconds: float, faster: float = 1.0) -> list[float]:
    """First and last note of an incarnation which begins so long after its order."""
    speed = RATE * SLOW[kind] * faster * (1.0 - (1.0 - CROWDED) * busy)
    return [at + begins + 1.0 / RATE, 1, at + begins + 1.0 / RATE + seconds, 1 + round(speed * seconds)]


def lonely_run(late: float = LATE, faster: float = 1.0) -> dict[str, Any]:
    """Forty jobs, one after the other; every fourth is stopped once."""
    jobs, orders, at = [], [], 0.0
    for place in range(40):
        kind, came = "ab"[place % 2], at
        steps = [life(at, kind, START + late, 0.0, 10.0, faster)]
        orders.append({"time": at, "order": "start", "job": place, "devices": [0]})
        if place % 4 == 0:
            orders.append({"time": steps[0][2], "order": "stop", "job": place, "devices": [0]})
            at = steps[0][2] + 5.0
            orders.append({"time": at, "order": "start", "job": place, "devices": [1]})
            steps.append(life(at, kind, RESUME + 2 * late, 0.0, 10.0, faster))
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
        assert speed.samples["start"] == pytest.approx([START + LEAVE + LATE + LINGERS] * 20)
        assert speed.resume == pytest.approx(RESUME + 2 * LATE)
        assert speed.line.rate == pytest.approx(RATE * faster, rel=1e-3)
    assert len(found.lives) == 50
    assert found.lives == pytest.approx([1.0] * 50, abs=1e-3)


def test_speeds_are_held_against_the_profile_beside_the_same_others(example: Any) -> None:
    history, _ = example
    seen = history.seen_in(crowded_run(), profiles(), TYPES)
    assert {kind: values[0] for kind, values in seen.speeds.items()} == pytest.approx(SLOW, rel=1e-3)


def test_a_run_without_notes_shows_no_parts(example: Any) -> None:
    history, _ = example
    run = lonely_run()
    bare = {**run, "jobs": [{name: value for name, value in job.items() if name != "steps"} for job in run["jobs"]]}
    seen = history.seen_in(bare, profiles(), TYPES)
    assert (seen.parts, seen.speeds) == ([], {})


def test_a_kind_starts_as_its_own_starts_and_those_of_its_size_say(example: Any) -> None:
    history, _ = example
    parts = [history.Part("start", kind, 1, seconds, 9.0) for kind, seconds, count in (("a", 2.0, 15), ("b", 4.0, 5)) for _ in range(count)]
    assert history._mean(parts, "a", 9.0) == pytest.approx((15 * 2.0 + 5 * 2.5) / 20)
    assert history._mean(parts, "b", 9.0) == pytest.approx((5 * 4.0 + 5 * 2.5) / 10)
    assert history._mean(parts, "c", 9.0) == pytest.approx(2.5)
    assert history._mean(parts[:2], "a", 9.0) == 9.0


def test_starts_at_once_delay_each_other_by_the_slope_within_each_run(example: Any) -> None:
    history, _ = example
    each = 0.07
    runs = [
        [history.Part("start", "a", size, day + size + each * beside, 0.0, beside) for size in (1, 2) for beside in (0, 3, most)]
        for day, most in ((0.0, 7), (5.0, 1))  # the slow run has fewer at once
    ]
    assert history._together(runs) == pytest.approx(each)
    assert history._together([[history.Part("start", "a", 1, 2.0, 0.0, 3)]]) == 0.0


def test_each_run_is_a_day_whose_starts_and_steps_differ_from_the_mean(example: Any) -> None:
    history, _ = example
    runs = [lonely_run(0.0, 1.0), lonely_run(1.0, 0.9)]
    known = history.refined(profiles(), runs, [], TYPES)
    quick, slow = (day["a"].alone["gpu", 1] for day in history.as_in_each(known, runs, TYPES))
    assert slow.line.startup - quick.line.startup == pytest.approx(1.2)  # forty starts 1 s later and ten resumes 2 s
    assert slow.line.rate / quick.line.rate == pytest.approx(0.9, rel=1e-3)
    assert (quick.line.startup + slow.line.startup) / 2 == pytest.approx(known["a"].alone["gpu", 1].line.startup)
    bare = [{**run, "jobs": [{**job, "steps": []} for job in run["jobs"]]} for run in runs]
    assert history.as_in_each(known, bare, TYPES) == [known]


def test_notes_of_steps_are_split_where_a_process_counts_anew(example: Any, tmp_path: Path) -> None:
    _, live = example
    log = tmp_path / "steps"
    log.write_text("100.5 1\n101.0 20\n109.0 3\n109.5 30\n")
    assert live.incarnations(log, 100.0) == [[0.5, 1, 1.0, 20], [9.0, 3, 9.5, 30]]
    assert live.incarnations(tmp_path / "none", 100.0) == []
