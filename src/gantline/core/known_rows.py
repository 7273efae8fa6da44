"""Rows that were written before and have not changed since: writing a long queue again costs only its new rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job
from gantline.core.job_json import encode_job
from gantline.core.phases import Phase
from gantline.core.tables import Tables

_WAIT = (int(Phase.PENDING), int(Phase.HELD))  # what is written of them does not depend on the time


class KnownRows:
    """Remembers what was written of rows that wait; call `look` before each time."""

    def __init__(self) -> None:
        self._jobs: dict[int, dict[str, Any]] = {}
        self._rows: Ints = np.empty(0, dtype=np.int64)  # those that waited at the last look, and how they were then
        self._F: Floats = np.empty((0, 0))
        self._I: Ints = np.empty((0, 0), dtype=np.int64)
        self._metrics: dict[str, Floats] = {}
        self.written = 0  # rows that had to be written anew

    def look(self, tables: Tables) -> None:
        """Forget those that have changed."""
        if len(self._rows):
            F, I = tables.F[:, self._rows], tables.I[:, self._rows]
            same = _equal(F, self._F) & (I == self._I).all(axis=0)
            for name, values in tables.metrics.items():
                before = self._metrics.get(name, np.full(len(self._rows), np.nan))
                same &= _equal(values[None, self._rows], before[None, :])
            self._jobs = {row: self._jobs[row] for row in self._rows[same].tolist() if row in self._jobs}
        self._rows = np.flatnonzero(np.isin(tables.I[Job.PHASE, : len(tables.ids)], _WAIT))
        self._F, self._I = tables.F[:, self._rows], tables.I[:, self._rows]
        self._metrics = {name: values[self._rows] for name, values in tables.metrics.items()}

    def encode(self, tables: Tables, row: int, now: float, packed: int) -> dict[str, Any]:
        """As `encode_job` has it."""
        first = int(tables.I[Job.OPTION_FIRST, row])
        found = self._jobs.get(row)
        if found is None:
            found = encode_job(tables, row, now, first)
            self.written += 1
            plain = row not in tables.granted and row not in tables.waits_for_turn and row not in tables.trials
            if plain and int(tables.I[Job.PHASE, row]) in _WAIT:
                self._jobs[row] = found
        elif row in tables.waits_for_turn:
            return encode_job(tables, row, now, packed)
        return dict(found) if first == packed else {**found, "first_option": first}


def _equal(one: Floats, other: Floats) -> Bools:
    """Columns that are equal, where nothing is equal to nothing."""
    same: Bools = ((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=0)
    return same
