"""Partial allocation: the split against exact search, payments by their definition, and lies that never pay."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.systems.themis.policies.auction import Bid, allocation_by_lot, fair_split, partial_allocation

MACHINES = 2
offers = st.lists(st.integers(0, 4), min_size=MACHINES, max_size=MACHINES).map(np.array)
row = st.tuples(*[st.integers(0, 3)] * MACHINES)
values = st.floats(0.05, 20.0)


@st.composite
def bids(draw: st.DrawFn) -> Bid:
    rows = draw(st.lists(row.filter(any), min_size=0, max_size=4, unique=True))
    said = draw(st.lists(values, min_size=len(rows), max_size=len(rows)))
    return Bid(draw(values), np.array(rows, dtype=np.int64).reshape(-1, MACHINES), np.array(said))


def exact(tables: list[Bid], offer: np.ndarray) -> float:
    """The greatest product of values, by trying everything."""
    best = -math.inf
    for choice in itertools.product(*[range(-1, len(bid.value)) for bid in tables]):
        used = sum((bid.use[at] for bid, at in zip(tables, choice) if at >= 0), np.zeros(MACHINES))
        if (used <= offer).all():
            best = max(best, product(tables, choice))
    return best


def product(tables: list[Bid], choice: object) -> float:
    return math.prod(float(bid.value[at]) if at >= 0 else bid.nothing for bid, at in zip(tables, choice))  # type: ignore[call-overload]


@given(st.lists(bids(), max_size=4), offers)
def test_the_split_has_the_greatest_product_and_fits(tables: list[Bid], offer: np.ndarray) -> None:
    split = fair_split(tables, offer)
    used = sum((bid.use[at] for bid, at in zip(tables, split) if at >= 0), np.zeros(MACHINES))
    assert (used <= offer).all()
    assert product(tables, split) == pytest.approx(exact(tables, offer))


@given(st.lists(bids(), min_size=1, max_size=4), offers)
def test_a_winner_keeps_what_the_others_have_over_what_they_would_have_without_it(tables: list[Bid], offer: np.ndarray) -> None:
    outcome = partial_allocation(tables, offer)
    for k, bid in enumerate(tables):
        others, rows = tables[:k] + tables[k + 1 :], np.delete(outcome.row, k)
        assert 0.0 < outcome.keep[k] <= 1.0
        assert outcome.keep[k] == pytest.approx(product(others, rows) / exact(others, offer))
        worth = outcome.keep[k] * (bid.value[outcome.row[k]] if outcome.row[k] >= 0 else bid.nothing)
        assert worth >= bid.nothing * (1 - 1e-9)  # nobody is worse off for bidding


@given(st.lists(bids(), min_size=1, max_size=3), offers, st.data())
def test_no_lie_gets_a_bidder_more_in_expectation(tables: list[Bid], offer: np.ndarray, data: st.DataObject) -> None:
    """The first bidder says other values than it has; what it gets is judged by those that it has."""
    true = tables[0]
    said = data.draw(st.lists(values, min_size=len(true.value), max_size=len(true.value)))
    lie = Bid(data.draw(values), true.use, np.array(said))

    def expected(told: Bid) -> float:
        outcome = partial_allocation([told, *tables[1:]], offer)
        at = outcome.row[0]
        return float(outcome.keep[0] * (true.value[at] if at >= 0 else true.nothing))

    assert expected(lie) <= expected(true) * (1 + 1e-9)


def test_three_bidders_for_eight_devices_leave_a_good_part_to_be_handed_out() -> None:
    """Value in proportion to devices, nothing worth little: each keeps (2/3 of 8)^2 over 4^2 devices, 4/9."""
    sizes = np.arange(1, 9)[:, None]
    tables = [Bid(0.01, sizes, np.arange(1.0, 9.0)) for _ in range(3)]
    outcome = partial_allocation(tables, np.array([8]))
    shares = outcome.row + 1
    assert sorted(shares.tolist()) == [2, 3, 3]
    assert outcome.keep[shares == 2] == pytest.approx([9 / 16])
    assert outcome.keep[shares == 3] == pytest.approx([6 / 16, 6 / 16])
    for below in (True, False):  # a lot below that part keeps the whole row, one above it nothing
        drawn = allocation_by_lot(tables, np.array([8]), outcome.keep + (-0.01 if below else 0.01))
        assert drawn.row.tolist() == outcome.row.tolist()
        assert drawn.keep.tolist() == [float(below)] * 3


def test_who_stands_in_nobodys_way_pays_nothing() -> None:
    here, there = (Bid(0.5, np.array([use]), np.array([1.0])) for use in ([2, 0], [0, 2]))
    assert partial_allocation([here, there], np.array([2, 2])).keep.tolist() == [1.0, 1.0]
    assert partial_allocation([], np.array([2, 2])).row.tolist() == []
