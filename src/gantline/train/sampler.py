"""Which samples come next: an order that any number of replicas walks together and can resume anywhere.

An epoch is one permutation of all samples, drawn from (seed, epoch) alone. A step takes the next ``batch`` positions of it and
deals them out to the replicas in turn. Where a job is in an epoch is therefore one number, and it means the same whatever
the number of replicas before and after: every sample is seen once per epoch, however often the job was resized (the
promise of EDL's data pipeline, TPDS 2022, and of AdaptDL's sampler).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, isqrt
from typing import Literal

_ROUNDS = 6
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Position:
    """How far a job is in its data: the epoch and the samples of it that are done."""

    epoch: int = 0
    index: int = 0


class Order:
    """A permutation of ``range(size)`` that is computed where it is looked at: it takes no memory, and no time to resume.

    A Feistel network over pairs (row, column) of a nearly square table; places beyond the size are walked past.
    """

    __slots__ = ("_columns", "_keys", "_rows", "size")

    def __init__(self, size: int, seed: int, epoch: int) -> None:
        if size < 1:
            raise ValueError(f"there are {size} samples: give one at least")
        self.size = size
        self._rows = isqrt(size - 1) + 1
        self._columns = -(-size // self._rows)
        digest = hashlib.blake2b(f"{seed}/{epoch}/{size}".encode(), digest_size=8 * _ROUNDS).digest()
        self._keys = tuple(int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(_ROUNDS))

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, place: int) -> int:
        """The sample at a place of the order."""
        if not 0 <= place < self.size:
            raise IndexError(place)
        while True:
            row, column = divmod(place, self._columns)
            for number in range(0, _ROUNDS, 2):
                row = (row + _mix(column, self._keys[number])) % self._rows
                column = (column + _mix(row, self._keys[number + 1])) % self._columns
            place = row * self._columns + column
            if place < self.size:
                return place


def _mix(value: int, key: int) -> int:
    """A number that looks like chance (the finaliser of SplitMix64)."""
    value = (value + key) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


@dataclass(frozen=True, slots=True)
class Sampler:
    """The samples of one replica, step by step.

    The last step of an epoch is short where the batch does not divide the samples; a replica may then get none, and still takes
    part in the step, so that all replicas make equally many.
    """

    size: int
    seed: int = 0
    shuffle: bool = True
    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if self.size < 1 or self.world < 1 or not 0 <= self.rank < self.world:
            raise ValueError(f"rank {self.rank} of {self.world} replicas over {self.size} samples is not possible")

    def step(self, position: Position, batch: int) -> tuple[list[int], int]:
        """This replica's samples of the next step, and how many all replicas take together."""
        if batch < 1:
            raise ValueError(f"a batch of {batch} samples makes no step")
        taken = min(batch, self.size - position.index)
        places = range(position.index + self.rank, position.index + taken, self.world)
        if not self.shuffle:
            return list(places), taken
        order = Order(self.size, self.seed, position.epoch)
        return [order[place] for place in places], taken

    def after(self, position: Position, taken: int) -> Position:
        """Where the job is once a step of so many samples is done."""
        index = position.index + taken
        return Position(position.epoch + 1, 0) if index >= self.size else Position(position.epoch, index)

    def epoch(self, position: Position, batch: int) -> Iterator[list[int]]:
        """This replica's samples of all steps to the end of the epoch."""
        at = position
        while at.epoch == position.epoch:
            own, taken = self.step(at, batch)
            yield own
            at = self.after(at, taken)


# How large a batch is and how it is divided: over the replicas, and on each into parts that fit.
#
# The total follows the allocation by one of two rules, or is what the scheduler or a hook asks for, within limits.

Follow = Literal["fixed", "replicas"]
_SLIP = 1e-8


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Which batches a job may use.

    ``base`` is the total batch that the learning rate was chosen for. With ``follow="fixed"`` the total stays what it is and the
    replicas share it (as in EDL); with ``"replicas"`` each replica brings ``base`` samples of its own.
    """

    base: int
    most: int = 0  # in all; 0: base where the batch is fixed, else no limit
    local_most: int = 0  # on one replica at once; 0: no limit
    follow: Follow = "fixed"

    def __post_init__(self) -> None:
        if self.base < 1:
            raise ValueError(f"a batch of {self.base} samples makes no step")
        if self.most and self.most < self.base:
            raise ValueError(f"batches from {self.base} to {self.most} are not possible")
        if self.local_most < 0:
            raise ValueError(f"local batches of at most {self.local_most} are not possible")
        if self.follow not in ("fixed", "replicas"):
            raise ValueError(f"a batch follows 'fixed' or 'replicas', not '{self.follow}'")

    def total(self, world: int, asked: int | None = None) -> int:
        """The total batch on so many replicas; ``asked`` is what the scheduler or a hook wants."""
        own = self.base * world if self.follow == "replicas" else self.base
        total = max(own if asked is None else asked, self.base)
        most = self.most or (self.base if self.follow == "fixed" else total)
        return min(total, most)

    def split(self, total: int, world: int) -> tuple[int, int]:
        """The local batch, and the steps without averaging before the one with it (Pollux, OSDI 2021, section 4.1).

        A replica alone with more than the base batch takes two parts at least, to see gradient noise between them.
        """
        local = ceil(total / world - _SLIP)
        steps = max(ceil(local / self.local_most - _SLIP) - 1, 0) if self.local_most else 0
        if world == 1 and total > self.base:
            steps = max(steps, 1)
        share = ceil(local / (steps + 1) - _SLIP)
        if self.most:
            share = min(share, floor(self.most / (world * (steps + 1))))
        return share, steps
