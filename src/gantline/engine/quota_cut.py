"""Assignments within the quotas: what a policy gives beyond them is cut, down to what the arbiter lets the job hold.

A group that starts together waits as one: where a quota holds one of its members back, the others do not start either.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignment, Assignments
from gantline.core.tables import Tables
from gantline.engine.sized_assignments import smaller_way


class WithinQuotas(NamedTuple):
    """A plan after the cut."""

    table: Assignments
    keeps: Ints  # rows that keep what they have, because they may not have more
    torn: Ints  # rows that get nothing because a quota holds back another member of their group


def cut_to_quotas(
    t: Tables, planned: Ints, sizes: Floats, table: Assignments, holds: Mapping[int, float], held: Mapping[int, float]
) -> WithinQuotas:
    """Each assignment with as many devices as its row may hold; `sizes` are what the plan gives, `held` what the rows have."""
    torn = _torn(planned, table, holds, held) if table.has("together") else set()
    items: list[Assignment] = []
    keeps: list[int] = []
    for row, size, item in zip(planned.tolist(), sizes.tolist(), table):
        most = holds[row]
        if most <= 0.0 or row in torn:
            continue
        if most >= size:
            items.append(item)
        elif most == held[row] or (smaller := smaller_way(t, row, item, int(most))) is None:
            keeps += [row] if held[row] else []
        else:
            items.append(smaller)
    kept, in_vain = (np.array(some, dtype=np.int64) for some in (keeps, sorted(torn)))
    return WithinQuotas(Assignments.of(items), kept, in_vain)


def _torn(planned: Ints, table: Assignments, holds: Mapping[int, float], held: Mapping[int, float]) -> set[int]:
    """The rows that wait and are to start together with one that may not."""
    groups, together = table.column("group").tolist(), table.column("together").tolist()
    waits = [(row, group) for row, group, whole in zip(planned.tolist(), groups, together) if whole and not held[row]]
    held_back = {group for row, group in waits if holds[row] <= 0.0}
    return {row for row, group in waits if group in held_back and holds[row] > 0.0}
