"""Rules that end a job by its loss: what ends it, what never does, and what a loss that is no number changes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import GantlineError
from gantline.engine.ending import NEVER, EndingRule, find_ending, unusable

LOSSES = st.lists(st.floats(-5.0, 5.0, allow_nan=False), min_size=1, max_size=40)
PLATEAUS = st.builds(EndingRule, st.just("plateau"), st.floats(0.0, 1.0), st.integers(1, 12), st.booleans())
RULES = st.one_of(st.just(NEVER), PLATEAUS, st.builds(EndingRule, st.just("target"), st.floats(-5.0, 5.0)))


@given(PLATEAUS, LOSSES)
def test_a_plateau_never_ends_a_job_whose_loss_still_falls_by_more_than_the_bound(rule: EndingRule, losses: list[float]) -> None:
    if len(losses) <= rule.window:
        assert not rule.ends(losses)
        return
    before, last = losses[-rule.window - 1], losses[-1]
    if before - last > rule.bound * (abs(before) if rule.relative else 1.0):
        assert not rule.ends(losses)


@given(PLATEAUS, LOSSES)
def test_a_job_that_goes_on_has_fallen_by_more_than_the_bound_within_the_window(rule: EndingRule, losses: list[float]) -> None:
    if len(losses) > rule.window and not rule.ends(losses):
        before = losses[-rule.window - 1]
        assert before - min(losses[-rule.window :]) > rule.bound * (abs(before) if rule.relative else 1.0)


@given(RULES, LOSSES, st.lists(st.tuples(st.integers(0, 40), st.sampled_from([math.nan, math.inf, -math.inf])), max_size=5))
def test_a_loss_that_is_no_number_changes_nothing_and_is_counted(
    rule: EndingRule, losses: list[float], odd: list[tuple[int, float]]
) -> None:
    mixed = list(losses[:-1])
    for place, value in odd:
        mixed.insert(min(place, len(mixed)), value)

    assert rule.ends([*mixed, losses[-1]]) == rule.ends(losses)
    assert not rule.ends([*losses, math.nan]), "nothing was learned from the last report"
    assert unusable(mixed) == len(odd)


@given(RULES)
def test_a_rule_is_read_back_from_its_text(rule: EndingRule) -> None:
    found = find_ending(str(rule))
    assert (found.kind, found.relative) == (rule.kind, rule.relative)
    assert found.bound == pytest.approx(rule.bound, rel=1e-11, abs=1e-300)
    assert found.window == rule.window or rule.kind != "plateau"


@given(RULES, LOSSES)
def test_all_reports_at_once_say_what_one_after_the_other_does(rule: EndingRule, losses: list[float]) -> None:
    assert rule.fires(np.array(losses)).tolist() == [rule.ends(losses[: count + 1]) for count in range(len(losses))]


@pytest.mark.parametrize(
    ("rule", "losses", "ends"),
    [
        ("plateau:0.1@2", [1.0, 0.5, 0.45], False),  # 0.55 in two reports
        ("plateau:0.1@2", [1.0, 0.5, 0.45, 0.42], True),  # 0.08
        ("plateau:10%@2", [1.0, 0.5, 0.45, 0.42], False),  # 16 % of 0.5
        ("plateau:10%@1", [1.0, 0.905], True),  # 10 % of the earlier loss is 0.1, of the later one it would be 0.0905
        ("plateau:10%@1", [-1.0, -1.095], True),  # of its size, where the earlier loss is below zero
        ("plateau:10%@1", [-1.0, -1.105], False),
        ("plateau:0.1@2", [0.5, 0.6, 0.9], True),  # a loss that rises has not fallen
        ("plateau:0.1@2", [0.9, 0.5, 0.95], False),  # one noisy report after a good one
        ("plateau:0@1", [0.5, 0.5], True),
        ("plateau:0.1@2", [0.5, 0.5], False),  # the window is not full
        ("plateau:0.1@2", [], False),
        ("target:0.5", [0.6, 0.5], True),
        ("target:0.5", [0.4, 0.6], False),
        ("never", [0.5] * 50, False),
    ],
)
def test_what_ends_a_job(rule: str, losses: list[float], ends: bool) -> None:
    assert find_ending(rule).ends(losses) is ends


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plateu:1", "did you mean 'plateau'"),
        ("plateau:", "'' is not a number"),
        ("plateau:-1%", "'-1%' is below zero"),
        ("plateau:1%@0", "a window of '0' reports"),
        ("plateau:1%@", "a window of '' reports"),
        ("plateau:1%@2.5", "a window of '2.5' reports"),
        ("target:nan", "'nan' is not a number"),
        ("target:5%", "'5%' is not a number"),
        ("never:1", "no rule 'never:1'"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(text: str, words: str) -> None:
    with pytest.raises(GantlineError, match=words):
        find_ending(text)
