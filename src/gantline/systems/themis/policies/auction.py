"""One auction: a proportionally fair split of the offer, and hidden payments that make the truth the best bid.

Partial allocation (Cole, Gkatzelis, Goel, EC 2013), as Themis uses it (Mahajan et al., NSDI 2020, section 4): the split has the greatest
product of values. A bidder keeps only a part of what it won there: the product of the others' values in the split, over what that
product would be without the bidder. What a bidder gets is then worth the product of all values over a number that it has no part in, so
no other bid can get it more than the true one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.solvers.multiple_choice import best_without, solve_choices

_EQUAL = 1e-9  # gains of logarithms below this are none


@dataclass(frozen=True)
class Bid:
    """The worth of bundles that one bidder declares: at most one row can be won."""

    nothing: float  # value of winning none, above zero
    use: Ints  # rows x machines: devices on each
    value: Floats  # per row, above zero

    @property
    def gain(self) -> Floats:
        """Per row: how much its logarithm is above that of nothing."""
        found: Floats = np.log(self.value) - np.log(self.nothing)
        return found


@dataclass(frozen=True)
class AuctionOutcome:
    """Per bidder: the row of the fair split (-1: none), and the part of it that is kept after the hidden payment."""

    row: Ints
    keep: Floats


class _SplitProgram(NamedTuple):
    """The rows that are worth having and fit, as columns of a program with a row per bidder and one per machine."""

    bidder: Ints
    row: Ints  # of the bidder's table
    need: Floats  # columns x machines that a bid names
    gain: Floats
    free: Floats

    @staticmethod
    def of(bids: Sequence[Bid], offer: Ints) -> _SplitProgram:
        use = np.concatenate([np.zeros((0, len(offer)), dtype=np.int64), *(bid.use.reshape(-1, len(offer)) for bid in bids)])
        gain = np.concatenate([np.zeros(0), *(bid.gain for bid in bids)])
        bidder = np.repeat(np.arange(len(bids)), [len(bid.value) for bid in bids])
        row = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(len(bid.value)) for bid in bids)])
        worth = np.flatnonzero((gain > _EQUAL) & (use <= offer).all(axis=1))
        machines = np.flatnonzero(use[worth].any(axis=0))
        need = use[worth][:, machines].astype(np.float64)
        return _SplitProgram(bidder[worth], row[worth], need, gain[worth], offer[machines].astype(np.float64))

    def split(self, bidders: int) -> Ints:
        found = np.full(bidders, -1, dtype=np.int64)
        if len(self.gain):
            names, number = np.unique(self.bidder, return_inverse=True)
            for column in solve_choices(number, self.need, self.gain, self.free, len(names)).columns:
                found[self.bidder[column]] = self.row[column]
        return found


def fair_split(bids: Sequence[Bid], offer: Ints) -> Ints:
    """The rows with the greatest product of values within the offer, exactly; -1: nothing."""
    return _SplitProgram.of(bids, offer).split(len(bids))


def partial_allocation(bids: Sequence[Bid], offer: Ints) -> AuctionOutcome:
    """The fair split of the offer, and what each winner keeps of its row."""
    program, keep = _SplitProgram.of(bids, offer), np.ones(len(bids))
    split = program.split(len(bids))
    reached = np.array([_log(bid, at) for bid, at in zip(bids, split.tolist())])
    best = np.array([_most(bid, offer) for bid in bids])
    lacks = best > reached + _EQUAL  # bidders that would have more without the others
    missed = [winner for winner in np.flatnonzero(split >= 0).tolist() if lacks.sum() > lacks[winner]]
    possible = best_without(program.bidder, program.need, program.gain, program.free, len(bids), missed)
    for winner, value in zip(missed, possible):
        keep[winner] = min(float(np.exp(reached.sum() - reached[winner] - value)), 1.0)
    return AuctionOutcome(split, keep)


def _log(bid: Bid, row: int) -> float:
    """The logarithm of what a row is worth, over that of nothing."""
    return float(bid.gain[row]) if row >= 0 else 0.0


def _most(bid: Bid, offer: Ints) -> float:
    """The same of the best row that the offer has room for."""
    fits = (bid.use <= offer).all(axis=1)
    return max(float(bid.gain[fits].max(initial=0.0)), 0.0)
