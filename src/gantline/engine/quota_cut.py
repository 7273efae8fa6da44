"""Assignments within the quotas: what a policy gives beyond them is cut, down to what the job has or needs at least.

A group that starts together waits as one: where a quota holds one of its members back, the others do not start either.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from gantline.admission.quotas import QuotaClaim, QuotaTree
from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.plan import Assignment, Assignments
from gantline.core.tables import Tables
from gantline.engine.sized_assignments import size_of, smaller_way


class WithinQuotas(NamedTuple):
    """A plan after the cut."""

    table: Assignments
    keeps: Ints  # rows that keep what they have, because they may not have more
    denied: Ints  # rows that get nothing because of a quota
    torn: Ints  # rows that get nothing because a quota holds back another member of their group


def cut_to_quotas(tree: QuotaTree, t: Tables, least: list[QuotaClaim], table: Assignments) -> WithinQuotas:
    """Every row gets the least that it needs, as far as the rule allows; then more, as the plan lists them, while their queues may.

    `least` has one claim per assignment, with the fewest devices that its job goes on with.
    """
    picked = tree.pick(sorted(least, key=lambda claim: not claim.runs))
    torn = _torn(least, table, picked) if table.has("together") else set()
    allowed = {row for row in picked if row not in torn}
    room = QuotaRoom(tree)
    for claim in {claim.row: claim for claim in least if claim.row in allowed}.values():
        room.take(claim, claim.size)
    items: list[Assignment] = []
    keeps: list[int] = []
    changed = False
    seen: set[int] = set()
    for claim, item in zip(least, table):
        wanted = size_of(t, claim.row, item)
        if claim.row not in allowed:
            changed = True
            continue
        if claim.row in seen or wanted <= claim.size:  # shares of the time count once
            items.append(item)
            seen.add(claim.row)
            continue
        seen.add(claim.row)
        more = room.take(claim, wanted - claim.size)
        if more >= wanted - claim.size:
            items.append(item)
            continue
        changed = True
        smaller = smaller_way(t, claim.row, item, int(claim.size + more))
        if claim.runs and int(t.I[c.HELD, claim.row]) == int(claim.size + more):
            keeps.append(claim.row)
        elif smaller is not None:
            items.append(smaller)
        elif claim.runs and t.I[c.HELD, claim.row] <= claim.size + more:
            keeps.append(claim.row)
    denied = [claim.row for claim in least if claim.row not in picked]
    kept, held_back, in_vain = (np.array(some, dtype=np.int64) for some in (keeps, denied, sorted(torn)))
    return WithinQuotas(Assignments.of(items) if changed else table, kept, held_back, in_vain)


def _torn(least: list[QuotaClaim], table: Assignments, picked: Collection[int]) -> set[int]:
    """The rows that wait and are to start together with one that may not."""
    groups, together = table.column("group").tolist(), table.column("together").tolist()
    waits = [(claim.row, group) for claim, group, whole in zip(least, groups, together) if whole and not claim.runs]
    held_back = {group for row, group in waits if row not in picked}
    return {row for row, group in waits if group in held_back and row in picked}


class QuotaRoom:
    """What may still be given, queue by queue."""

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self.free = [tree.capacity, *(node.limit for node in tree.nodes[1:])]
        self.users: dict[int, float] = {}

    def take(self, claim: QuotaClaim, size: float) -> float:
        """So much of it as there is room for."""
        path = (0, *self.tree.paths[claim.queue])
        user = self.users.get(claim.user, self.tree.user_quota)
        given = max(0.0, min(size, user, *(self.free[at] for at in path)))
        for at in path:
            self.free[at] -= given
        self.users[claim.user] = user - given
        return float(given)
