"""Describes which quota keeps a job waiting, and which jobs use it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gantline.policies.admission.arbiter import Books
from gantline.policies.admission.quotas import QuotaTree

_NAMED = 5  # holders that are named
USER = -1  # in place of a queue: the quota is the user's


def binding_queue(tree: QuotaTree, books: Books, queue: int, user: int, size: float) -> int | None:
    """The node of the tree whose quota keeps a job of that size waiting, `USER` for its user's; None: only the devices do."""
    if books.by_user[user] + size > tree.user_quota:
        return USER
    path = [at for at in tree.paths[queue] if not tree.stands_for_several(at)]
    over = [at for bounds in (books.limit, books.quota) for at in path if books.used[at] + size > bounds[at]]
    return over[0] if over else None


def bound(tree: QuotaTree, at: int, user: str) -> str:
    """What a queue or a user may hold."""
    if at == USER:
        return f"user '{user}' may hold {tree.user_quota:g}"
    node = tree.nodes[at]
    holder = f"queue '{node.name}'"
    if math.isinf(node.limit):
        return f"{holder} has a quota of {node.quota:g} and finds nothing idle to borrow"
    more = f", {node.limit - node.quota:g} of them borrowed" if node.limit > node.quota else ""
    return f"{holder} may hold {node.limit:g}{more}"


def with_holders(text: str, holders: Sequence[tuple[str, float]]) -> str:
    """The text with the jobs that use the quota, and how much each holds."""
    if not holders:
        return text
    named = ", ".join(f"{job} ({size:g})" for job, size in holders[:_NAMED])
    more = f" and {len(holders) - _NAMED} more" if len(holders) > _NAMED else ""
    return f"{text}; it holds {sum(size for _, size in holders):g}: {named}{more}"
