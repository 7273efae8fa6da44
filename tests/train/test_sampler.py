"""Every sample once per epoch, whatever the number of replicas and however often it changes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantline.train import Order, Position, Sampler


@settings(max_examples=settings().max_examples // 3)
@given(size=st.integers(1, 400), seed=st.integers(0, 5), epoch=st.integers(0, 5))
def test_an_order_is_a_permutation(size: int, seed: int, epoch: int) -> None:
    order = Order(size, seed, epoch)
    assert sorted(order[i] for i in range(size)) == list(range(size))


def test_orders_differ_by_seed_and_epoch_and_look_shuffled() -> None:
    def drawn(seed: int, epoch: int) -> list[int]:
        order = Order(1000, seed, epoch)
        return [order[i] for i in range(1000)]

    first = drawn(0, 0)
    assert first == drawn(0, 0)
    assert first != drawn(1, 0)
    assert first != drawn(0, 1)
    # neighbours stay neighbours about as often as in a fair shuffle: twice in a thousand
    assert sum(abs(a - b) == 1 for a, b in pairwise(first)) < 12
    assert sum(i == sample for i, sample in enumerate(first)) < 8
    assert 200 < sum(sample < 500 for sample in first[:500]) < 300


def test_a_place_in_a_billion_samples_costs_no_memory() -> None:
    order = Order(10**9, 0, 0)
    assert len({order[place] for place in range(0, 10**9, 10**7)}) == 100


@given(
    size=st.integers(1, 200),
    shuffle=st.booleans(),
    legs=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 40), st.integers(1, 6)), min_size=1, max_size=8),
)
def test_resizing_covers_every_sample_once_per_epoch(size: int, shuffle: bool, legs: list[tuple[int, int, int]]) -> None:
    """Legs of (replicas, total batch, steps), over and over, for two epochs."""
    seen: dict[int, Counter[int]] = {0: Counter(), 1: Counter()}
    at, leg = Position(), 0
    while at.epoch < 2:
        world, batch, steps = legs[leg % len(legs)]
        leg += 1
        ranks = [Sampler(size, 7, shuffle, rank, world) for rank in range(world)]
        for _ in range(steps):
            if at.epoch >= 2:
                break
            shares = [rank.step(at, batch) for rank in ranks]
            assert len({taken for _, taken in shares}) == 1
            assert max(len(own) for own, _ in shares) - min(len(own) for own, _ in shares) <= 1
            for own, _ in shares:
                seen[at.epoch].update(own)
            at = ranks[0].after(at, shares[0][1])
    for counts in seen.values():
        assert counts == Counter(range(size))


def test_the_samples_of_a_step_do_not_depend_on_the_number_of_replicas() -> None:
    def step(world: int) -> set[int]:
        return {i for rank in range(world) for i in Sampler(50, 3, True, rank, world).step(Position(2, 17), 12)[0]}

    assert step(1) == step(2) == step(5)
    assert len(step(1)) == 12


def test_an_epoch_ends_with_a_short_step() -> None:
    assert [len(own) for own in Sampler(10, shuffle=False).epoch(Position(), 4)] == [4, 4, 2]
    assert [len(own) for own in Sampler(9, rank=1, world=2).epoch(Position(0, 8), 4)] == [0]


@pytest.mark.parametrize(("size", "rank", "world"), [(0, 0, 1), (5, 1, 1), (5, -1, 2), (5, 0, 0)])
def test_impossible_samplers_are_refused(size: int, rank: int, world: int) -> None:
    with pytest.raises(ValueError, match="not possible"):
        Sampler(size, rank=rank, world=world)
