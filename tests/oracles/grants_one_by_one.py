"""What performance models are shown of gangs that share, read from their grants one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.grant import Grant
from gantline.core.plan import ASSIGNMENT_DEFAULTS
from gantline.engine.commit.shown_gangs import ShownGangs
from gantline.models.gangs import DeviceSharers, SharingColumns


class ColumnsOfGrants(SharingColumns):
    """Columns of some rows and their grants."""

    def __init__(self, gangs: ShownGangs, rows: Ints, grants: Sequence[Grant | None]) -> None:
        self._gangs, self._rows, self._grants = gangs, rows, grants
        self.special: Bools = np.array([grant is not None for grant in grants], dtype=np.bool_)
        self.shared: Bools = np.array([grant is not None and grant.shared for grant in grants], dtype=np.bool_)

    @cached_property
    def group(self) -> Ints:
        numbers: dict[frozenset[int], int] = {}
        named = (grant.members[0] if grant is not None else frozenset[int]() for grant in self._grants)
        return np.array([numbers.setdefault(each, len(numbers)) if each else -1 for each in named], dtype=np.int64)

    def asked(self, name: str) -> Floats:
        return _asked(name, self._grants)

    def asked_by(self, name: str, rows: Ints) -> Floats:
        return _asked(name, [self._gangs.state.tables.granted.get(row) for row in rows.tolist()])

    @cached_property
    def sharers(self) -> DeviceSharers:
        holdings, places, entries = self._gangs.holdings, list[tuple[int, int]](), list[tuple[int, int]]()
        for at in np.flatnonzero(self.shared).tolist():
            row = int(self._rows[at])
            for device in holdings.of(row).devices:
                entries += [(len(places), other) for other in sorted(holdings.tenants(device)) if other != row]
                places.append((at, device))
        return DeviceSharers(*np.array(places, dtype=np.int64).reshape(-1, 2).T, *np.array(entries, dtype=np.int64).reshape(-1, 2).T)

    def mates(self, at: int) -> list[int]:
        grant = self._grants[at]
        return [] if grant is None else self._gangs.mates(int(self._rows[at]), grant)


def _asked(name: str, grants: Sequence[Grant | None]) -> Floats:
    default = ASSIGNMENT_DEFAULTS[name]
    return np.array([default if grant is None else getattr(grant.assignment, name) for grant in grants], dtype=np.float64)
