"""Assignments within the quotas: what a policy gives beyond them is cut, down to what the job has or needs at least."""

from __future__ import annotations

import numpy as np

from gantline.admission.quotas import QuotaClaim, QuotaTree
from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.plan import Assignment, Assignments
from gantline.core.tables import Tables
from gantline.engine.sized_assignments import size_of, smaller_way


def cut_to_quotas(tree: QuotaTree, t: Tables, least: list[QuotaClaim], rows: Ints, table: Assignments) -> tuple[Assignments, Ints]:
    """Every row gets the least that it needs, as far as the rule allows; then more, as the plan lists them, while their queues may.

    `least` has one claim per assignment, with the fewest devices that its job goes on with. Also returns the rows that keep what they have.
    """
    allowed = tree.pick(sorted(least, key=lambda claim: not claim.runs))
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
    return (Assignments.of(items) if changed else table), np.array(keeps, dtype=np.int64)


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
