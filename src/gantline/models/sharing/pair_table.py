"""How fast two jobs are that share their devices: measured pairs of configurations, relative to running alone.

A configuration is what a job trains: network, data set, batch size and precision as one key, ``ResNet18/CIFAR-10/32/amp``. Pairs that were
not measured are estimated from those that were, by completing the matrix of speeds as a product of two vectors (Gavel, OSDI 2020, section
6); a configuration that is in no pair has the nearest measured one stand in for it, by what was measured while it ran alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import TraceError
from gantline.models.sharing.matrix_completion import complete

NOISE = 0.15
"""By how much two measurements of one configuration beside itself may differ; their mean counts."""
TINY, MEDIUM, JUMBO = 0, 1, 2
"""Sharing scores (Lucid, ASPLOS 2023, section 3.3): how much a configuration and its partners slow each other down."""
_TINY_ABOVE, _MEDIUM_ABOVE = 0.95, 0.85
_FASTEST = 1.5  # beside another job; caches and clocks make some pairs faster than alone
_PRECISION = {"0": "fp32", "1": "amp", "0.0": "fp32", "1.0": "amp", "": "fp32", "false": "fp32", "true": "amp"}


def configuration_key(network: str, dataset: str, batch: str, amp: str) -> str:
    """One key for what a job trains."""
    return "/".join((network, dataset, batch.removesuffix(".0"), _PRECISION.get(amp.lower(), amp)))


class AloneProfile(NamedTuple):
    """What was measured of a configuration that ran alone; NaN where it was not."""

    amp: float
    gpu_util: float  # per cent
    gmem_util: float  # per cent
    gmem: float  # MB


class PairRow(NamedTuple):
    """One measured pair; a speed is NaN where only the other job was watched."""

    first: str
    first_speed: float
    second: str
    second_speed: float
    line: int


@dataclass(frozen=True)
class PairTable:
    """Measured speeds [configuration, beside which], NaN where no pair was measured."""

    names: tuple[str, ...]
    measured: Floats
    source: str = ""
    least: float = 0.0
    """An estimate below this counts as zero: the two cannot share."""

    @staticmethod
    def of(rows: Iterable[PairRow], source: str) -> PairTable:
        """A table that agrees with itself; rows that contradict each other are refused with their lines."""
        speeds: dict[tuple[str, str], tuple[float, int]] = {}
        for row in rows:
            sides = [(row.first, row.second, row.first_speed), (row.second, row.first, row.second_speed)]
            if row.first == row.second:
                sides = [(row.first, row.second, _beside_itself(row, source))]
            for own, other, speed in sides:
                if np.isnan(speed):
                    continue
                if speed <= 0.0:
                    what = f"{own} beside {other} has speed {speed:g}"
                    raise TraceError(what, file=source, line=row.line, fix="give a part of its speed alone, such as 0.9")
                before = speeds.setdefault((own, other), (speed, row.line))
                if before[0] != speed:
                    what = f"{own} beside {other} has speed {speed:g} here and {before[0]:g} in line {before[1]}"
                    raise TraceError(what, file=source, line=row.line, fix="keep one of the rows")
        for (own, other), (_, line) in speeds.items():
            if (other, own) not in speeds:
                what = f"{own} is measured beside {other}, but not {other} beside {own}"
                raise TraceError(what, file=source, line=line, fix="give the speeds of both jobs of a pair")
        names = tuple(dict.fromkeys(name for pair in speeds for name in pair))
        at = {name: place for place, name in enumerate(names)}
        measured = np.full((len(names), len(names)), np.nan)
        for (own, other), (speed, _) in speeds.items():
            measured[at[own], at[other]] = speed
        return PairTable(names, measured, source)

    @cached_property
    def speed(self) -> Floats:
        """The same with an estimate in place of every pair that was not measured."""
        known = ~np.isnan(self.measured)
        if known.all() or not known.any():
            return self.measured
        found = complete(np.nan_to_num(self.measured), known, rank=1)
        return np.where(known, self.measured, np.where(found < self.least, 0.0, np.clip(found, 0.0, _FASTEST)))

    @cached_property
    def scores(self) -> tuple[int, ...]:
        """The sharing score of each configuration, by the mean of its measured speeds beside those that it can share with."""
        shares = self.measured > 0.0
        means = np.where(shares, self.measured, 0.0).sum(axis=1) / np.maximum(shares.sum(axis=1), 1)
        return tuple(sharing_score_of(mean) for mean in np.round(means, 3).tolist())

    def nearest(self, own: AloneProfile, known: Mapping[str, AloneProfile]) -> str | None:
        """The measured configuration that ran alone most like this one; None: nothing can be compared."""
        names = [name for name in self.names if name in known]
        if not names:
            return None
        table = np.array([known[name] for name in names])
        shared = ~np.isnan(np.array(own)) & ~np.isnan(table).any(axis=0)
        if not shared.any():
            return None
        spread = np.maximum(table[:, shared].std(axis=0), 1e-9)
        distance = np.square((table[:, shared] - np.array(own)[shared]) / spread).sum(axis=1)
        return names[int(np.argmin(distance))]


def sharing_score_of(speed: float) -> int:
    """The sharing score of a configuration whose pairs run at this mean speed."""
    return TINY if speed >= _TINY_ABOVE else MEDIUM if speed >= _MEDIUM_ABOVE else JUMBO


def _beside_itself(row: PairRow, source: str) -> float:
    """The speed of a configuration beside itself: two measurements of one thing, of which the mean counts."""
    both = np.array([row.first_speed, row.second_speed])
    if abs(both[0] - both[1]) > NOISE:
        what = f"{row.first} beside itself has the speeds {both[0]:g} and {both[1]:g}"
        raise TraceError(what, file=source, line=row.line, fix=f"two runs of one configuration differ by {NOISE:g} at most; measure again")
    return float(np.nanmean(both))
