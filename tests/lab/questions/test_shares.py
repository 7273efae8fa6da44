"""By which draw one more future has come, with at least a given chance."""

from __future__ import annotations

import pytest

from gantline.lab.questions.forecast import place_of


@pytest.mark.parametrize("draws", [9, 10, 11, 12, 20, 31, 40, 199, 200])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_one_more_future_is_as_likely_in_each_gap_between_the_draws(draws: int, share: float) -> None:
    place = place_of(share, draws)
    assert (place + 1) / (draws + 1) >= share  # there are one gap more than draws, and this many lie before it
    assert place / (draws + 1) < share


def test_few_draws_cannot_promise_and_give_their_last() -> None:
    assert [place_of(0.9, draws) for draws in (1, 5, 8)] == [0, 4, 7]
