"""One kind of contradiction in a table, and the rows that show it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

REPAIR = "gantline trace check FILE --repair OUT"


@dataclass(frozen=True)
class Finding:
    """One kind of contradiction and the rows that show it; no rows: the table as a whole."""

    field: str
    what: str
    fix: str
    repairable: bool = False
    rows: tuple[int, ...] = ()
    cells: pl.DataFrame | None = None

    def describe(self, position: int) -> str:
        """The sentence about the row at ``rows[position]``."""
        return self.what if self.cells is None else self.what.format(**self.cells.row(position, named=True))
