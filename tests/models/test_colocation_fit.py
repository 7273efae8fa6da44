"""Lives beside others become one entry of a profile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gantline.core.errors import UsageError
from gantline.models.profiles.bundle import Bundle, Profile
from gantline.models.profiles.colocation_fit import TrialLife, fit_colocation


def _life(start: float, *speeds: tuple[float, float]) -> TrialLife:
    return TrialLife(start, leave=0.5, resume=start / 2, speeds=speeds)


def test_speeds_alone_beside_half_and_beside_all_are_a_line() -> None:
    speed = fit_colocation([_life(1.0, (0.0, 100.0), (0.5, 90.0), (1.0, 80.0)), _life(3.0, (0.0, 100.0), (1.0, 80.0))])
    assert speed.line.rate == pytest.approx(100.0)
    assert speed.crowded == pytest.approx(0.8)
    assert (speed.line.startup, speed.resume, speed.leave) == pytest.approx((2.5, 1.0, 0.5))  # a job ends once: part of its start
    assert speed.samples["start"] == pytest.approx((1.5, 3.5))
    assert speed.samples["speed"] == pytest.approx([1.0] * 5)


def test_neighbours_make_nothing_faster() -> None:
    speed = fit_colocation([_life(1.0, (0.0, 40.0), (0.5, 90.0), (1.0, 110.0))])
    assert (speed.line.rate, speed.crowded) == pytest.approx((80.0, 1.0))


def test_what_starts_at_once_cost_is_a_mean_of_lives_and_never_a_gain() -> None:
    some = [replace(_life(1.0, (0.0, 100.0)), together=seconds) for seconds in (0.1, 0.3)]
    assert fit_colocation(some).together == pytest.approx(0.2)
    assert fit_colocation([replace(some[0], together=-0.1)]).together == 0.0


def test_it_is_written_and_read_again() -> None:
    speed = replace(fit_colocation([_life(1.0, (0.0, 100.0), (1.0, 83.0))]), together=0.04)
    again = Bundle.of(Bundle({"a": Profile("a", alone={("h200", 1): speed})}).to_json())["a"].alone["h200", 1]
    assert again.crowded == pytest.approx(0.83, rel=1e-5)
    assert again.together == 0.04
    assert again.samples.keys() == speed.samples.keys()


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"crowded": 0.0}, "above 0"),
        ({"crowded": 2.5}, "at most 2"),
        ({"together": -1.0}, "0 or more"),
        ({"samples": {"start": []}}, "speeds over the fitted one"),
        ({"samples": {"start": ["1"]}}, "speeds over the fitted one"),
        ({"samples": {"begin": [1.0]}}, "begin"),
    ],
)
def test_mistakes_in_a_file_are_named(entry: dict[str, object], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Bundle.of({"format": "gantline-profiles/1", "jobs": {"a": {"alone": [{"type": "h200", "seconds": 1.0, **entry}]}}})


def test_a_job_of_which_no_step_was_seen_has_no_speed() -> None:
    with pytest.raises(UsageError, match="no step"):
        fit_colocation([_life(1.0)])
