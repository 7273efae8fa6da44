"""How fast two gangs are that share their devices, by device type and size of the gangs, from a table of throughputs.

Gavel (OSDI 2020) measured pairs so: steps per second alone and beside another job, on each type and for each size, within a node and
across nodes; two zeros say that the two cannot share. What is kept of the speed alone is used here, so that work may be counted in any
unit. A pair that was not measured is estimated from the others of its type and size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError, near
from gantline.models.pair_model import PairModel
from gantline.models.pair_table import AloneProfile, PairTable
from gantline.models.throughput_table import TableSpeeds, ThroughputTable

_LEAST = 0.3
"""An estimate below this is taken for a pair that cannot share: right for 98 % of the pairs of Gavel's file that were left out."""


class PairPlace(NamedTuple):
    """Where a pair was measured."""

    type: int  # code of the device type in the cluster
    gpus: int
    across: bool  # whether the gangs span nodes


@dataclass(frozen=True)
class TypedPairModel(PairModel):
    """`table` has the mean over all places, from which sharing scores follow; speeds are those of the place."""

    tables: Mapping[PairPlace, PairTable] = field(default_factory=dict)

    def kept(self, own: str, other: str, type: int, gpus: int, nodes: int = 1) -> float | None:
        """By the table of this type and size; of a size that was not measured, by the nearest one, smaller sizes first."""
        a, b = self.stand_in(own), self.stand_in(other)
        for table in self._tables_for(type, gpus, nodes > 1) if a is not None and b is not None else ():
            if a in table.names and b in table.names:
                return float(table.speed[table.names.index(a), table.names.index(b)])
        return None

    def _tables_for(self, type: int, gpus: int, across: bool) -> Iterator[PairTable]:
        places = [place for place in self.tables if place.type == type and place.across <= across]
        nearest = sorted(places, key=lambda place: (place.gpus > gpus, abs(place.gpus - gpus), place.across != across))
        return (self.tables[place] for place in nearest)


def typed_pair_model(
    table: ThroughputTable, types: Sequence[str], alone: Mapping[str, AloneProfile], of_job: Mapping[str, str]
) -> TypedPairModel:
    """The pairs of a table of throughputs on the device types of a cluster, all of which it must have."""
    known = {name.lower(): column for column, name in enumerate(table.types)}
    tables: dict[PairPlace, PairTable] = {}
    for code, name in enumerate(types):
        if name.lower() not in known:
            raise NotFoundError(f"no device type '{name}' in the table of pairs", where=table.source, fix=near(name, table.types))
        for size in sorted({size for _, size in table.keys}):
            rows = np.array([row for row, key in enumerate(table.keys) if key[1] == size])
            names = tuple(table.keys[row][0] for row in rows.tolist())
            for across, speeds in ((False, table.packed), (True, table.spread)):
                measured = _kept(speeds, rows, known[name.lower()])
                if not np.isnan(measured).all():
                    tables[PairPlace(code, size, across)] = PairTable(names, measured, table.source, _LEAST)
    if not tables:
        raise NotFoundError("has no pairs of jobs", where=table.source, fix="name a table with speeds beside other jobs")
    return TypedPairModel(_mean(list(tables.values())), alone, of_job, tables)


def _kept(speeds: TableSpeeds, rows: Ints, column: int) -> Floats:
    """The part of the speed alone that each keeps beside each; what cannot run alone cannot share either."""
    alone = speeds.alone[rows, column][:, None]
    beside = speeds.paired[np.ix_(rows, rows)][:, :, column]
    return np.where(alone > 0.0, beside / np.where(alone > 0.0, alone, 1.0), np.where(np.isnan(alone), np.nan, 0.0))


def _mean(tables: Sequence[PairTable]) -> PairTable:
    """One table with the mean of several, over those in which a pair can share; 0 where it can in none."""
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    at = {name: place for place, name in enumerate(names)}
    total, shares, known = (np.zeros((len(names), len(names))) for _ in range(3))
    for table in tables:
        here = np.ix_(*[[at[name] for name in table.names]] * 2)
        total[here] += np.nan_to_num(table.measured)
        shares[here] += table.measured > 0.0
        known[here] += ~np.isnan(table.measured)
    return PairTable(names, np.where(known > 0, total / np.maximum(shares, 1), np.nan), tables[0].source, _LEAST)
