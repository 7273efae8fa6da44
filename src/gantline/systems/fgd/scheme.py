"""The authors' filling experiment as they ran it: Go's generator, its order of draws, and what their program does at the end of tuning."""

from __future__ import annotations

from collections.abc import MutableSequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.lab.experiment.cluster_filling import FillOrder, FillScheme

# Go's `math/rand`, draw by draw: the arrivals and the order of nodes in the authors' runs come from it.
#
# An additive lagged Fibonacci generator of 607 words of 64 bits (Mitchell and Moore, 1958). Go mixes the seed with 607
# constants, which are the state of the same generator, seeded with 1, after 7.8e12 draws. They are computed here
# instead of listed: a draw is linear in the state, so the state after n draws is a polynomial, x^n modulo that of the
# recurrence, applied to the first state.


_LENGTH, _TAP = 607, 273
_DRAWS = 7_800_000_000_000
_PRIME = 2**31 - 1
_WORD = 2**64

Words = NDArray[np.uint64]


class GoRandom:
    """A `rand.Source` with the functions of `rand.Rand` that the authors' program calls."""

    def __init__(self, seed: int) -> None:
        mixed = _seed_words(seed, 40, 20) ^ go_constants()
        self._words = [int(word) for word in mixed]
        self._tap, self._feed = 0, _LENGTH - _TAP

    def draw(self) -> int:
        """63 bits."""
        self._tap = (self._tap - 1) % _LENGTH
        self._feed = (self._feed - 1) % _LENGTH
        word = (self._words[self._feed] + self._words[self._tap]) % _WORD
        self._words[self._feed] = word
        return word & (_WORD // 2 - 1)

    def below(self, count: int) -> int:
        """`Intn`: a number from 0 to count - 1."""
        found = self.draw() >> 32
        if count & (count - 1) == 0:
            return found & (count - 1)
        while found > _PRIME - (2**31 % count):
            found = self.draw() >> 32
        return found % count

    def shuffle(self, items: MutableSequence[int]) -> None:
        """`Shuffle`, in place."""
        for last in range(len(items) - 1, 0, -1):
            product = (self.draw() >> 31) * (last + 1)
            while product % 2**32 < 2**32 % (last + 1):
                product = (self.draw() >> 31) * (last + 1)
            other = product >> 32
            items[last], items[other] = items[other], items[last]

    def permutation(self, count: int) -> list[int]:
        """`Perm`."""
        found = [0] * count
        for at in range(count):
            other = self.below(at + 1)
            found[at] = found[other]
            found[other] = at
        return found


def _seed_words(seed: int, high: int, middle: int) -> Words:
    """607 words, each of three draws of a Lehmer generator, shifted against each other."""
    state = seed % _PRIME or 89482311
    for _ in range(20):
        state = 48271 * state % _PRIME
    words = []
    for _ in range(_LENGTH):
        word = 0
        for shift in (high, middle, 0):
            state = 48271 * state % _PRIME
            word ^= state << shift
        words.append(word % _WORD)
    return np.array(words, dtype=np.uint64)


@cache
def go_constants() -> Words:
    """The state of the generator after so many draws that nothing of its seed is left."""
    # the words in the order of their age: the next draw is the sum of the oldest and of the one 334 draws younger
    at = (_LENGTH - _TAP - 1 - np.arange(_LENGTH)) % _LENGTH
    sequence = [int(word) for word in _seed_words(1, 20, 10)[at]]
    for n in range(_LENGTH, 2 * _LENGTH - 1):
        sequence.append((sequence[n - _LENGTH] + sequence[n - _TAP]) % _WORD)
    words = np.empty(_LENGTH, dtype=np.uint64)
    words[(at - _DRAWS) % _LENGTH] = np.correlate(np.array(sequence, dtype=np.uint64), _power_of_x(_DRAWS))
    return words


def _power_of_x(exponent: int) -> Words:
    """x^exponent modulo x^607 - x^334 - 1, coefficients modulo 2^64: by squaring."""
    found = np.zeros(_LENGTH, dtype=np.uint64)
    found[0] = 1
    for bit in bin(exponent)[2:]:
        found = _reduced(np.convolve(found, found))
        if bit == "1":
            found = _reduced(np.concatenate([np.zeros(1, dtype=np.uint64), found]))
    return found


def _reduced(product: Words) -> Words:
    """Powers from 607 on by smaller ones, from the highest down, as many at once as do not meet each other."""
    rest = np.zeros(2 * _LENGTH, dtype=np.uint64)
    rest[: len(product)] = product
    end = len(rest)
    while end > _LENGTH:
        begin = max(_LENGTH, end - _TAP)
        high = rest[begin:end].copy()
        rest[begin - _LENGTH : end - _LENGTH] += high
        rest[begin - _TAP : end - _TAP] += high
        end = begin
    return rest[:_LENGTH]


# The authors' filling experiment as they ran it: Go's generator, its order of draws, and what their program does at the end of tuning.

_BEFORE_RANKS = 10
"""Draws between the workload and the ranks of the nodes, found by trial: the scheduler starts there and its informers draw once each."""


@dataclass(frozen=True)
class FgdScheme(FillScheme):
    """Equal to the published runs, seed by seed."""

    def order(self, requests: Ints, part: Floats, target: float, nodes: int, seed: int) -> FillOrder:
        go = GoRandom(seed)
        go.draw()
        order = list(range(len(requests)))
        go.shuffle(order)
        asked = int(requests.sum())
        if asked > target:
            while asked > target:
                asked -= int(requests[order.pop(go.below(len(order)))])
        elif asked > 0:
            pod = go.below(len(requests))
            while asked + part[pod] <= target:  # of one device, not of all: the authors' slip
                order.append(pod)
                asked += int(requests[pod])
                pod = go.below(len(requests))
        for _ in range(_BEFORE_RANKS):
            go.draw()
        ranks = np.array(go.permutation(nodes))
        return FillOrder(np.array(order, dtype=np.int64), np.argsort(ranks))


SCHEME = FgdScheme(published=True, most_cpu=128_000.0, most_gpu=8_000.0, most_pods=1001)
