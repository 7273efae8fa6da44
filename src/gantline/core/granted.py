"""Grants by row, each made when it is first read: a commit of thousands of gangs enters them as columns, and few are ever looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Protocol

from gantline.core.grant import Grant


class MakesGrants(Protocol):
    """What remembers the grants of many rows."""

    def grant(self, row: int) -> Grant:
        """The grant of a row, as it was committed."""


class Granted(MutableMapping[int, Grant]):
    """A dictionary of grants, some of which are still to be made."""

    __slots__ = ("_held",)

    def __init__(self, held: Iterable[tuple[int, Grant]] = ()) -> None:
        self._held: dict[int, Grant | MakesGrants] = dict(held)

    def enter(self, rows: Iterable[int], maker: MakesGrants) -> None:
        """The grants of these rows are what `maker` says."""
        self._held.update(dict.fromkeys(rows, maker))

    def drop(self, rows: Iterable[int]) -> None:
        """These rows have no grant any more; none is made for that."""
        for row in rows:
            self._held.pop(row, None)

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
        self._held[row] = grant

    def __delitem__(self, row: int) -> None:
        del self._held[row]

    def __iter__(self) -> Iterator[int]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return repr(dict(self))
