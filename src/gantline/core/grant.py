"""What a job holds when that is more than a gang of its own: shared devices, several roles, a part of the time, a batch size.

Grants by row are made when they are first read: a commit of thousands of gangs enters them as columns, and few are ever looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.plan import Assignment


@dataclass(frozen=True, slots=True)
class Worker:
    """One placed worker of a grant with several roles."""

    role: str
    node: int
    devices: tuple[int, ...] = ()
    cpus: float = 0.0
    memory: float = 0.0
    storage: float = 0.0


@dataclass(frozen=True, slots=True)
class Grant:
    """A job's grant as it was committed. In its assignments `job` is the job's row, which is stable, rather than a position."""

    items: tuple[Assignment, ...]  # more than one only for shares of the time on several types
    members: tuple[frozenset[int], ...] = (frozenset(),)  # per item: rows of its group, itself included
    devices: tuple[int, ...] = ()  # in rank order
    shared: bool = False  # whether others may hold the same devices: those of its group, or all that share without one
    workers: tuple[Worker, ...] = ()  # which worker sits where, for grants with several roles
    side: tuple[tuple[int, float, float, float], ...] = ()  # (node, CPUs, GB, MB/s of storage) held beside what the option in use says
    fluid: tuple[tuple[int, float], ...] = ()  # per item of a time share: (row of its option, devices' worth), on no device in particular

    @property
    def assignment(self) -> Assignment:
        """What the plan said (the first share, where there are several)."""
        return self.items[0]


class MakesGrants(Protocol):
    """What remembers the grants of many rows."""

    def grant(self, row: int) -> Grant:
        """The grant of a row, as it was committed."""


class Granted(MutableMapping[int, Grant]):
    """A dictionary of grants, some of which are still to be made."""

    __slots__ = ("_held", "_here", "_rows")

    def __init__(self, held: Iterable[tuple[int, Grant]] = ()) -> None:
        self._held: dict[int, Grant | MakesGrants] = dict(held)
        self._here: Bools = np.zeros(0, dtype=np.bool_)  # by row: whether it has a grant
        self._rows: Ints | None = None  # those rows; None: to be looked up
        for row in self._held:
            self._mark(row, True)

    def enter(self, rows: list[int], maker: MakesGrants) -> None:
        """The grants of these rows are what `maker` says."""
        if rows:
            self._held.update(dict.fromkeys(rows, maker))
            self._mark(rows, True)

    def drop(self, rows: list[int]) -> None:
        """These rows have no grant any more; none is made for that."""
        if rows and self._held:
            for row in rows:
                self._held.pop(row, None)
            self._mark(rows, False)

    def _mark(self, rows: int | list[int], here: bool) -> None:
        most = rows if isinstance(rows, int) else max(rows)
        if most >= len(self._here):
            self._here = np.concatenate([self._here, np.zeros(most + 1, dtype=np.bool_)])
        self._here[rows] = here
        self._rows = None

    def rows(self) -> Ints:
        """The rows that have a grant, in rising order."""
        if self._rows is None:
            self._rows = np.flatnonzero(self._here)
        return self._rows

    def has(self, rows: Ints) -> Bools:
        """Which of these rows have a grant."""
        if len(rows) and int(rows.max()) >= len(self._here):
            self._mark(int(rows.max()), int(rows.max()) in self._held)
        return self._here[rows]

    def here(self, rows: int) -> Bools:
        """By row, for so many rows: whether it has a grant; to be read only, and until the next change."""
        if rows > len(self._here):
            self._here = np.concatenate([self._here, np.zeros(rows, dtype=np.bool_)])
        return self._here

    def __getitem__(self, row: int) -> Grant:
        found = self._held[row]
        if not isinstance(found, Grant):
            found = self._held[row] = found.grant(row)
        return found

    def get(self, row: int, default: Grant | None = None) -> Grant | None:  # type: ignore[override]
        return self[row] if row in self._held else default

    def __contains__(self, row: object) -> bool:
        return row in self._held

    def __setitem__(self, row: int, grant: Grant) -> None:
        if row not in self._held:
            self._mark(row, True)
        self._held[row] = grant

    def __delitem__(self, row: int) -> None:
        del self._held[row]
        self._mark(row, False)

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return repr(dict(self))
