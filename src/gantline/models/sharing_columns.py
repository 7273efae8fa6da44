"""What gangs were granted beyond their options, as columns: which of them share devices with which, and what they were given of them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.plan import ASSIGNMENT_DEFAULTS


class DeviceCompany(NamedTuple):
    """Which gangs are on which shared devices: one place per gang and device, one entry per other gang there.

    Places are in the order of the gangs and of their ranks, entries in the order of the places and then of the rows.
    """

    gang: Ints  # per place
    device: Ints  # per place
    place: Ints  # per entry
    row: Ints  # per entry: the other gang's

    @property
    def crowded(self) -> Ints:
        """Per entry the gang that another one is beside."""
        return np.asarray(self.gang[self.place])


class SharingColumns(Protocol):
    """What some gangs were granted beyond their options."""

    special: Bools  # whether there is a grant
    shared: Bools  # whether other gangs may be on its devices

    @property
    def group(self) -> Ints:
        """A number per group, -1: none."""

    @property
    def company(self) -> DeviceCompany:
        """Which gangs are on its devices."""

    def asked(self, name: str) -> Floats:
        """A number of its assignment."""

    def asked_by(self, name: str, rows: Ints) -> Floats:
        """The same of other rows."""

    def mates(self, at: int) -> list[int]:
        """The rows on its devices; where it shares none but is in a group, the others of the group."""


class NoGrants(SharingColumns):
    """The columns of gangs that have their options and nothing else."""

    def __init__(self, count: int) -> None:
        none: Ints = np.zeros(0, dtype=np.int64)
        self.special = self.shared = np.zeros(count, dtype=np.bool_)
        self._company = DeviceCompany(none, none, none, none)

    @property
    def group(self) -> Ints:
        return np.full(len(self.special), -1)

    @property
    def company(self) -> DeviceCompany:
        return self._company

    def asked(self, name: str) -> Floats:
        return np.full(len(self.special), ASSIGNMENT_DEFAULTS[name])

    def asked_by(self, name: str, rows: Ints) -> Floats:
        return np.full(len(rows), ASSIGNMENT_DEFAULTS[name])

    def mates(self, at: int) -> list[int]:
        return []
