"""Profiles: lines through short runs, bundles as files, and what is estimated where nobody measured."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import GantlineError, NotFoundError, UsageError
from gantline.models.profiles.bundle import Bundle, Pairing, Profile, SampledLine, Speed, fit_line, two_points
from gantline.models.profiles.unmeasured import estimate_unmeasured, refit
from gantline.traces.files.speeds import read_bundle, read_throughputs, write_bundle


@given(startup=st.floats(0.01, 100), seconds=st.floats(1e-4, 10), short=st.integers(0, 50), longer=st.integers(1, 500))
def test_two_runs_give_start_and_step(startup: float, seconds: float, short: int, longer: int) -> None:
    runs = [(float(n), startup + n * seconds) for n in (short, short + longer)]
    line = fit_line(runs, resolution=0.0)
    assert line.startup == pytest.approx(startup, rel=1e-6, abs=1e-6)
    assert line.seconds == pytest.approx(seconds, rel=1e-6)
    assert line.whole(1000).value == pytest.approx(startup + 1000 * seconds, rel=1e-6)


def test_one_watched_run_gives_start_and_step() -> None:
    """First steps that are slow and what comes after the last one belong to the start; the last steps are not noted."""
    slow, step, closing = 3.0, 0.01, 0.4
    notes = [(slow + step * n, n) for n in range(1, 600, 5)]
    notes[0] = (slow - 1.0, 1)  # the first step was made early, and then it took a second to get going
    line = fit_line(two_points(notes, 600, slow + 600 * step + closing), resolution=0.0)
    assert (line.startup, line.seconds) == (pytest.approx(slow + closing), pytest.approx(step))
    with pytest.raises(UsageError, match="only once"):
        two_points([(1.0, 1)], 1, 2.0)


def test_the_range_holds_the_truth_nineteen_times_in_twenty() -> None:
    rng, held = random.Random(3), 0
    for _ in range(400):
        runs = [(float(n), 2.0 + n * 0.05 + rng.gauss(0, 0.1)) for n in (10, 10, 60, 60)]
        line = fit_line(runs, resolution=0.0)
        held += line.low <= 0.05 <= line.high
    assert 0.91 <= held / 400 <= 0.99


def test_runs_too_short_to_see_a_step_bound_it_from_above_only() -> None:
    line = fit_line([(10.0, 3.2), (20.0, 3.1)])
    assert (line.startup, line.low, line.high) == (0.0, 0.0, 3.1 / 20)
    assert line.whole(1000).low == 0.0


def test_nothing_starts_before_it_is_asked_to() -> None:
    line = fit_line([(10.0, 0.9), (20.0, 2.1)])
    assert line.startup == 0.0
    assert line.seconds == pytest.approx((10 * 0.9 + 20 * 2.1) / 500)


@pytest.mark.parametrize("runs", [[(10.0, 1.0)], [(10.0, 1.0), (10.0, 2.0)], [(10.0, 0.0), (20.0, 1.0)], [(1.0, math.nan), (2.0, 1.0)]])
def test_runs_that_show_nothing_are_refused(runs: list[tuple[float, float]]) -> None:
    with pytest.raises(UsageError):
        fit_line(runs)


def _speed(seconds: float, startup: float = 1.0) -> Speed:
    return Speed(SampledLine(startup, seconds, 0.5 * seconds, 2.0 * seconds))


def _bundle() -> Bundle:
    seats = {("h200", 1): _speed(0.01), ("cpu", 1): _speed(0.2)}
    conv = Profile("conv", ("python", "conv.py"), 500.0, "vision", seats, {("h200", 1, "lm"): Pairing(0.6)})
    lm = Profile("lm", alone={("h200", 1): _speed(0.02), ("cpu", 1): _speed(0.8)}, pairs={("h200", 1, "conv"): Pairing(0.5)})
    return Bundle({"conv": conv, "lm": lm}, "made up", "h200:1,cpu:4")


def test_a_bundle_survives_its_file_and_is_a_throughput_table(tmp_path: Path) -> None:
    path = tmp_path / "profiles.json"
    write_bundle(_bundle(), path)
    assert read_bundle(path) == _bundle()
    assert [entry.name for entry in tmp_path.iterdir()] == ["profiles.json"]
    table = read_throughputs(path)
    rows = [table.key("conv", 1), table.key("lm", 1)]
    assert table.alone(rows, ["h200", "cpu"]).tolist() == [[100.0, 5.0], [50.0, 1.25]]  # type: ignore[arg-type]
    assert table.packed.paired[rows[0], rows[1], table.types.index("h200")] == pytest.approx(60.0)
    assert table.packed.paired[rows[1], rows[0], table.types.index("h200")] == pytest.approx(25.0)


def test_the_whole_time_of_a_job_has_a_range() -> None:
    told = _bundle()["conv"].whole(("h200", 1))
    assert (told.value, told.low, told.high) == (6.0, 3.5, 11.0)
    with pytest.raises(NotFoundError, match="not measured on 2 x h200"):
        _bundle()["conv"].whole(("h200", 2))
    with pytest.raises(NotFoundError, match="conv"):
        _bundle()["cnov"]


def test_what_was_not_measured_follows_from_how_others_differ() -> None:
    """Four jobs on two types, a factor of twenty apart; the fifth was only run on one of them."""
    jobs = {f"job{i}": Profile(f"job{i}", alone={("h200", 1): _speed(0.01 * i), ("cpu", 1): _speed(0.2 * i)}) for i in range(1, 5)}
    jobs["new"] = Profile("new", alone={("cpu", 1): _speed(2.0)})
    jobs["twin"] = Profile("twin", family="f")
    jobs["job1"] = Profile("job1", family="f", alone=jobs["job1"].alone)
    jobs["alien"] = Profile("alien")
    filled = estimate_unmeasured(Bundle(jobs))
    guess = filled["new"].alone["h200", 1]
    assert guess.source == "estimated"
    assert guess.line.seconds == pytest.approx(0.1, rel=1e-6)
    assert guess.line.low <= 0.1 <= guess.line.high
    assert filled["new"].alone["cpu", 1] == jobs["new"].alone["cpu", 1]
    assert filled["twin"].alone["h200", 1].line.seconds == pytest.approx(0.01)
    assert filled["alien"].alone == {}  # nothing is known, and nothing is said
    assert refit(filled)["new"].alone == jobs["new"].alone


def test_ranges_of_estimates_widen_with_how_far_others_were_off() -> None:
    factors = (10.0, 20.0, 40.0, 20.0)
    jobs = {f"job{i}": Profile(f"job{i}", alone={("h200", 1): _speed(0.01), ("cpu", 1): _speed(0.01 * f)}) for i, f in enumerate(factors)}
    jobs["new"] = Profile("new", alone={("cpu", 1): _speed(0.2)})
    line = estimate_unmeasured(Bundle(jobs))["new"].alone["h200", 1].line
    assert line.high / line.low > 3.0


def test_pairs_are_completed_from_those_that_were_measured() -> None:
    """Ratios are the product of how much one gives and how much one takes."""
    gives, names = (1.0, 0.8, 0.6, 0.9), ("a", "b", "c", "d")

    def ratio(i: int, j: int) -> float:
        return gives[i] * gives[j]

    jobs = {
        name: Profile(
            name,
            alone={("h200", 1): _speed(0.01)},
            pairs={("h200", 1, other): Pairing(ratio(i, j)) for j, other in enumerate(names) if (i, j) not in ((0, 3), (2, 1))},
        )
        for i, name in enumerate(names)
    }
    filled = estimate_unmeasured(Bundle(jobs))
    guess = filled["a"].pairs["h200", 1, "d"]
    assert guess.source == "estimated"
    assert guess.ratio == pytest.approx(0.9, abs=0.05)
    assert filled["c"].pairs["h200", 1, "b"].ratio == pytest.approx(0.48, abs=0.05)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "gantline-profiles/9"}, "gantline-profiles/1"),
        ({"jbos": {}}, "unknown key 'jbos'"),
        ({"jobs": {"a": {"alone": [{"gpus": 1}]}}}, "device type"),
        ({"jobs": {"a": {"alone": [{"type": "x", "seconds": 0}]}}}, "no possible speed"),
        ({"jobs": {"a": {"alone": [{"type": "x", "runs": [[1, 2, 3]]}]}}}, "steps, seconds"),
        ({"jobs": {"a": {"alone": [], "pairs": [{"type": "x", "with": "b", "ratio": 0.5}]}}}, "no profile"),
        ({"jobs": {"a": {"alone": [], "pairs": [{"type": "x", "with": "a", "ratio": -1}]}}}, "ratio"),
        ({"jobs": {"a": {"command": "python x.py"}}}, "list of words"),
    ],
)
def test_mistakes_in_a_bundle_are_named(change: dict[str, Any], told: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(json.dumps({"format": "gantline-profiles/1", "jobs": {}, **change}))
    with pytest.raises(GantlineError) as error:
        read_bundle(path)
    assert told in str(error.value) + error.value.fix


def test_a_file_that_is_no_bundle_is_told(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(GantlineError, match="not JSON"):
        read_bundle(tmp_path / "b.json")
    with pytest.raises(NotFoundError):
        read_bundle(tmp_path / "none.json")
