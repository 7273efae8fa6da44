"""Quotas hold under every policy, beside windows and minimum runs, on both clocks, in thousands of small worlds."""

from __future__ import annotations

import pytest
from tests.engine.quota_worlds import draw_world, run_world

WORLDS = 5_000
AT_EVERY_CHANGE = 200
PIECE = 50


def broken(seeds: range) -> list[str]:
    """What is wrong in these worlds, with what it takes to try again."""
    found = []
    for seed in seeds:
        world = draw_world(seed)
        found += [f"seed {seed}, {what}, in {world}" for what in run_world(world)[:1]]
    return found


@pytest.mark.parametrize("first", range(0, AT_EVERY_CHANGE, PIECE))
def test_quotas_hold_in_small_worlds(first: int) -> None:
    assert not broken(range(first, first + PIECE))


@pytest.mark.long
@pytest.mark.parametrize("first", range(AT_EVERY_CHANGE, WORLDS, PIECE))
def test_quotas_hold_in_thousands_of_worlds(first: int) -> None:
    assert not broken(range(first, first + PIECE))
