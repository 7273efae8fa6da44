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
from gantline.models.solvers.choices_without import best_without, less_without
from gantline.models.solvers.multiple_choice import solve_choices

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
        """Per bidder: the column that it wins, -1: none."""
        found = np.full(bidders, -1, dtype=np.int64)
        if len(self.gain):
            names, number = np.unique(self.bidder, return_inverse=True)
            won = solve_choices(number, self.need, self.gain, self.free, len(names)).columns
            found[self.bidder[won]] = won
        return found


class _Split(NamedTuple):
    """The fair split, and which of its winners stand in the way of others."""

    program: _SplitProgram
    column: Ints  # per bidder
    gain: Floats
    missed: list[int]

    @staticmethod
    def of(bids: Sequence[Bid], offer: Ints) -> _Split:
        program = _SplitProgram.of(bids, offer)
        column, gain, most = program.split(len(bids)), np.zeros(len(bids)), np.zeros(len(bids))
        gain[column >= 0] = program.gain[column[column >= 0]]
        np.maximum.at(most, program.bidder, program.gain)
        lacks = most > gain + _EQUAL  # bidders that would have more without the others
        return _Split(program, column, gain, [winner for winner in np.flatnonzero(column >= 0).tolist() if lacks.sum() > lacks[winner]])

    @property
    def row(self) -> Ints:
        """Per bidder: the row of its table, -1: none."""
        return np.where(self.column >= 0, np.append(self.program.row, -1)[self.column], -1)

    @property
    def of_others(self) -> Floats:
        """What the others of each winner that is missed gain."""
        others: Floats = self.gain.sum() - self.gain[self.missed]
        return others


def fair_split(bids: Sequence[Bid], offer: Ints) -> Ints:
    """The rows with the greatest product of values within the offer, exactly; -1: nothing."""
    return _Split.of(bids, offer).row


def partial_allocation(bids: Sequence[Bid], offer: Ints) -> AuctionOutcome:
    """The fair split of the offer, and what each winner keeps of its row."""
    split, keep = _Split.of(bids, offer), np.ones(len(bids))
    bidder, _, need, gain, free = split.program
    possible = best_without(bidder, need, gain, free, len(bids), split.missed)
    keep[split.missed] = np.minimum(np.exp(split.of_others - possible), 1.0)
    return AuctionOutcome(split.row, keep)


def allocation_by_lot(bids: Sequence[Bid], offer: Ints, lots: Floats) -> AuctionOutcome:
    """The fair split of the offer, of which a winner keeps all if its lot, from 0 to 1, is below the part that it would keep; else nothing.

    A lot asks for less than the part itself: whether the others would have gained less without the winner than the lot allows.
    """
    split, keep = _Split.of(bids, offer), np.ones(len(bids))
    bidder, _, need, gain, free = split.program
    limits = split.of_others - np.log(np.maximum(lots[split.missed], np.finfo(np.float64).tiny))
    keep[split.missed] = less_without(bidder, need, gain, free, len(bids), split.missed, limits.tolist())
    return AuctionOutcome(split.row, keep)
