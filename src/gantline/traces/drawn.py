"""A few drawn columns as NumPy holds them: a generated trace whose frame has not been asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gantline.core.arrays import Ints

if TYPE_CHECKING:
    import polars as pl

MOST = 10_000
"""Up to so many rows, plain loops over text take less time than importing polars."""
_KINDS = {"f": "Float64", "i": "Int64"}


@dataclass(frozen=True)
class Drawn:
    """Columns without an empty cell: numbers (64 bits) as arrays, text as lists."""

    columns: Mapping[str, Any]

    @classmethod
    def knows(cls, columns: Mapping[str, Any]) -> bool:
        """Whether these are few enough and of these kinds."""
        return len(columns["arrival"]) <= MOST and all(_is_plain(cells) for cells in columns.values())

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def kind(self, name: str) -> str:
        """What polars calls the type of a column."""
        cells = self.columns[name]
        return "String" if isinstance(cells, list) else _KINDS[cells.dtype.kind]

    def content(self, name: str) -> Iterator[bytes]:
        """What a column holds, in the parts that a trace's hash is made of (`trace.content`)."""
        yield bytes(len(self))
        cells = self.columns[name]
        if isinstance(cells, list):
            texts = [cell.encode() for cell in cells]
            yield np.array([len(text) for text in texts], dtype=np.uint32).tobytes()
            yield b"".join(texts)
        else:
            yield np.ascontiguousarray(cells).tobytes()

    def codes(self, name: str) -> tuple[list[str], Ints]:
        """The texts of a column in order of appearance, and a number per row that says which."""
        return codes_of(self.columns[name])

    def frame(self) -> pl.DataFrame:
        """The same as a frame."""
        import polars as pl

        return pl.DataFrame({name: pl.Series(name, cells, dtype=getattr(pl, self.kind(name))) for name, cells in self.columns.items()})


def codes_of(texts: list[str]) -> tuple[list[str], Ints]:
    """The texts in order of appearance, and a number for each that says which it is."""
    known: dict[str, int] = {}
    codes = [known.setdefault(text, len(known)) for text in texts]
    return list(known), np.array(codes, dtype=np.int64)


def _is_plain(cells: Any) -> bool:
    return isinstance(cells, list) or (isinstance(cells, np.ndarray) and cells.dtype.str[1:] in ("f8", "i8"))
