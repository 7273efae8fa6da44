"""Which row of the option table an assignment means: one of the job's own options, or a new way derived from one."""

from __future__ import annotations

import math

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.options import Option
from gantline.core.plan import Assignments
from gantline.core.tables import Tables

IMPOSSIBLE = -1


class OptionRows:
    """Finds option rows, and appends each derived way once."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._interned: dict[Option, int] = {}

    def of_table(self, rows: Ints, table: Assignments) -> Ints:
        """One option row per assignment of a simple plan; -1: there is no such way."""
        I = self.tables.I
        owner, chosen = rows[table.job], table.column("option")
        if not (table.has("gpus") or table.has("type")):
            found = I[c.OPTION_FIRST][owner] + np.maximum(chosen, 0)
            return np.where(chosen < I[c.OPTION_COUNT][owner], found, IMPOSSIBLE).astype(np.int64)
        wanted = zip(owner.tolist(), chosen.tolist(), table.column("gpus").tolist(), table.column("type").tolist())
        return np.array([self.find(row, option, gpus, kind) for row, option, gpus, kind in wanted], dtype=np.int64)

    def find(self, row: int, option: int, gpus: int, kind: int, cpus: float = math.nan, memory: float = math.nan) -> int:
        """An option of the job's own if one matches, else a new one whose speed follows the performance model; -1: impossible."""
        base = self._base(row, option, gpus, kind)
        if base == IMPOSSIBLE:
            return IMPOSSIBLE
        OI = self.tables.options.I
        size, type_code = OI[c.O_GPUS, base] if gpus < 0 else gpus, OI[c.O_TYPE, base] if kind < 0 else kind
        same = bool(size == OI[c.O_GPUS, base] and type_code == OI[c.O_TYPE, base])
        if same and math.isnan(cpus) and math.isnan(memory):
            return base
        way, size, type_code = self.tables.options[base], int(size), int(type_code)
        if size == 0 and way.gpus > 0:
            return IMPOSSIBLE  # a gang of nobody
        rate = way.rate if same else self._rate(row, way, type_code, size)
        if rate is None:
            return IMPOSSIBLE
        spread = way.rate if way.rate_spread is None else way.rate_spread
        workers = max(size, 1)
        return self.intern(
            Option(
                type_code,
                size,
                rate=rate,
                rate_spread=rate * (spread / way.rate) if way.rate else rate,
                cpus=way.cpus if math.isnan(cpus) else cpus / workers,
                memory=way.memory if math.isnan(memory) else memory / workers,
                nodes=way.nodes if same else 0,
            )
        )

    def bare(self, row: int, option: int, kind: int, gpus: int) -> int:
        """A way without side demands of its own, for grants whose parts say what they need; its speed is that of the job's option."""
        base = self._base(row, option, gpus, kind)
        way = self.tables.options[int(self.tables.I[c.OPTION_FIRST, row]) if base == IMPOSSIBLE else base]
        spread = way.rate if way.rate_spread is None else way.rate_spread
        return self.intern(Option(kind, gpus, way.rate, spread))

    def intern(self, wanted: Option) -> int:
        """The row of this very way, appended when it is new."""
        found = self._interned.get(wanted)
        if found is None:
            found = self._interned[wanted] = self.tables.options.append(wanted)
        return found

    def _base(self, row: int, option: int, gpus: int, kind: int) -> int:
        """The job's option that the wanted way is, or is derived from: same type and size, else same type, else its first."""
        t = self.tables
        first, count = int(t.I[c.OPTION_FIRST, row]), int(t.I[c.OPTION_COUNT, row])
        if option >= count or kind >= len(t.cluster.types):
            return IMPOSSIBLE
        if option >= 0:
            return first + option
        same_type = [k for k in range(first, first + count) if kind < 0 or t.options.I[c.O_TYPE, k] == kind]
        for candidate in same_type:
            if gpus < 0 or t.options.I[c.O_GPUS, candidate] == gpus:
                return candidate
        return same_type[0] if same_type else first

    def _rate(self, row: int, way: Option, kind: int, gpus: int) -> float | None:
        """Speed of a derived way: the model's word, else linear in the size; nobody knows the speed on another type."""
        model = self.tables.performance
        if model is not None and hasattr(model, "rate"):
            return float(model.rate(self.tables.ids[row], kind, gpus))
        if kind != way.type or way.gpus == 0:
            return None
        return way.rate * gpus / way.gpus
