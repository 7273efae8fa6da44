"""Who may hold devices, and who gives way to whom: the one rule of quotas, on arrays, for rankings and assignments alike.

Each queue's jobs take their turns in the policy's order, and of several queues the one is next that borrows nothing with its first job;
else the one that has then borrowed least for its weight (`next_head`). Whoever runs keeps what it has, and what cannot be stopped
counts as everything else does. A job that waits starts if no queue of its own exceeds its limit by that (`within_limits`). Another
queue's job is stopped for it only if that one's queue holds more than its quota, and the waiting one's does not, or has then borrowed no
more for its weight than the other still has (`gives_way`). Within a queue that is for the policy to say.

The walk of a ranking (`engine.gates.quota_walk`) applies this to places on nodes; `arbitrate` to numbers of devices, for plans that assign.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

NOTHING: Final = 1 << 30  # deeper than any queue: a job that borrows nothing
NOBODY: Final = -1


class Books(NamedTuple):
    """The queues by number (0: the cluster), which of them each job's queue is, and what queues and users hold."""

    parent: Ints
    depth: Ints
    quota: Floats
    limit: Floats  # with what may be borrowed
    weight: Floats
    leaf: Ints  # by code of a job's queue
    domain: Ints  # the same: the lowest queue that has a quota
    used: Floats
    by_user: Floats
    user_quota: Floats  # one number


class QueueLines(NamedTuple):
    """Claims that wait, in one line per queue that has a quota; each claim knows the one behind it."""

    head: Ints  # by queue; NOBODY: none is left
    behind: Ints  # by claim
    queue: Ints
    size: Floats


class QuotaClaims(NamedTuple):
    """Jobs as a plan that assigns has them, in its order; behind them those that it leaves out."""

    queue: Ints
    user: Ints
    held: Floats  # now
    least: Floats  # with which the job goes on
    asked: Floats  # by the plan; 0: left out
    stays: Ints  # 1: it holds devices and cannot be stopped or made smaller now


@kernel
def count_in(b: Books, queue: int, user: int, size: float) -> None:
    """A job holds so much more from now on, or less."""
    at = b.leaf[queue]
    while at > 0:
        b.used[at] += size
        at = b.parent[at]
    b.by_user[user] += size


@kernel
def within_limits(b: Books, queue: int, user: int, size: float) -> bool:
    """Whether a job may hold so much more."""
    if b.by_user[user] + size > b.user_quota[0]:
        return False
    at = b.leaf[queue]
    while at > 0:
        if b.used[at] + size > b.limit[at]:
            return False
        at = b.parent[at]
    return True


@kernel
def could_ever(b: Books, queue: int, size: float) -> bool:
    """Whether a job of this size fits its queues while nothing else runs."""
    if size > b.user_quota[0]:
        return False
    at = b.leaf[queue]
    while at > 0:
        if size > b.limit[at]:
            return False
        at = b.parent[at]
    return True


@kernel
def borrows_at(b: Books, queue: int, size: float) -> int:
    """The topmost queue that would hold more than its quota; NOTHING: none would."""
    at, found = b.leaf[queue], NOTHING
    while at > 0:
        if b.used[at] + size > b.quota[at]:
            found = at
        at = b.parent[at]
    return found


@kernel
def share(b: Books, at: int, more: float) -> float:
    """What a queue has borrowed for its weight, with so much more; below zero: it has some of its quota left."""
    return float((b.used[at] + more - b.quota[at]) / b.weight[at])


@kernel
def gives_way(b: Books, queue: int, size: float, other: int, held: float) -> bool:
    """Whether a job that runs may be stopped, by its quota, for one of another queue that waits."""
    if b.domain[queue] == b.domain[other]:
        return False
    a, z, mine, theirs = b.leaf[queue], b.leaf[other], NOBODY, NOBODY
    while a != z:
        if b.depth[z] >= b.depth[a]:
            if b.quota[z] < np.inf and b.used[z] <= b.quota[z]:
                return False  # what it holds was promised to this one
            theirs = z
            z = b.parent[z]
        else:
            mine = a
            a = b.parent[a]
    if theirs == NOBODY:
        return False
    if mine == NOBODY:
        return bool(b.used[a] + size - held <= b.quota[a])
    return bool(b.used[mine] + size <= b.quota[mine] or share(b, mine, size) <= share(b, theirs, -held))


@kernel
def line_up(b: Books, lines: QueueLines, count: int) -> None:
    """Claims that wait, in the order in which they are given; those with a size below zero do not."""
    for at in range(b.parent.shape[0]):
        lines.head[at] = NOBODY
    for k in range(count - 1, -1, -1):
        if lines.size[k] >= 0.0:
            at = b.domain[lines.queue[k]]
            lines.behind[k] = lines.head[at]
            lines.head[at] = k


@kernel
def next_head(b: Books, lines: QueueLines) -> int:
    """The claim whose turn it is; NOBODY: no line has one."""
    best, best_depth, best_share = NOBODY, -1, np.inf
    for at in range(b.parent.shape[0]):
        k = lines.head[at]
        if k < 0:
            continue
        top = borrows_at(b, lines.queue[k], lines.size[k])
        depth = NOTHING if top == NOTHING else b.depth[top]
        borrowed = -np.inf if top == NOTHING else share(b, top, lines.size[k])
        first = borrowed < best_share or (borrowed == best_share and k < best)
        if best < 0 or depth > best_depth or (depth == best_depth and first):
            best, best_depth, best_share = k, depth, borrowed
    return int(best)


@kernel
def leave(b: Books, lines: QueueLines, k: int) -> None:
    """The first claim of a line has had its turn."""
    lines.head[b.domain[lines.queue[k]]] = lines.behind[k]


def lines_for(b: Books, count: int) -> QueueLines:
    """Empty lines for so many claims."""
    whole, each = np.zeros(len(b.parent), dtype=np.int64), np.zeros(count, dtype=np.int64)
    return QueueLines(whole, each, each.copy(), np.zeros(count))


def arbitrate(b: Books, claims: QuotaClaims, room: float, strict: bool = False) -> Floats:
    """What each job may hold, where the cluster has `room` in all; the books, which know of no job before, have it entered.

    It is asked when some queue would borrow by the plan: then a job that the plan leaves out goes on with what it has, and for one that
    waits its least is set aside, where its queue is promised that. With `strict` no job passes another of its queue, and what is promised
    counts as there although it is lent.
    """
    lines, holds = lines_for(b, len(claims.queue)), np.zeros(len(claims.queue))
    _distribute(b, claims, room, strict, lines, holds)
    return holds


@kernel
def _distribute(b: Books, claims: QuotaClaims, room: float, strict: bool, lines: QueueLines, holds: Floats) -> None:
    n = claims.queue.shape[0]
    for k in range(n):
        if claims.held[k] > 0.0 and (claims.stays[k] == 1 or claims.asked[k] > 0.0):
            _give(b, claims, k, claims.held[k] if claims.stays[k] == 1 else min(claims.held[k], claims.least[k]), holds)
            room -= holds[k]
        lines.queue[k] = claims.queue[k]
        lines.size[k] = claims.least[k] if claims.held[k] <= 0.0 and claims.asked[k] > 0.0 else -1.0
    line_up(b, lines, n)
    kept = False
    while True:
        k = next_head(b, lines)
        if not kept and (k < 0 or borrows_at(b, claims.queue[k], claims.least[k]) != NOTHING):
            kept = True
            room = _keep_promises(b, claims, lines, room, holds)
            continue
        if k < 0:
            break
        leave(b, lines, k)
        back = _lent(b) if strict and borrows_at(b, claims.queue[k], claims.least[k]) == NOTHING else 0.0
        if claims.least[k] <= room + back and within_limits(b, claims.queue[k], claims.user[k], claims.least[k]):
            _give(b, claims, k, claims.least[k], holds)
            room -= holds[k]
        elif strict and could_ever(b, claims.queue[k], claims.least[k]):
            lines.head[b.domain[claims.queue[k]]] = NOBODY
    for loans in (False, True):
        for k in range(n):
            if holds[k] > 0.0 and claims.asked[k] > holds[k]:
                more = min(room, claims.asked[k] - holds[k], _free(b, claims.queue[k], claims.user[k], loans))
                if more > 0.0:
                    _give(b, claims, k, holds[k] + more, holds)
                    room -= more


@kernel
def _lent(b: Books) -> float:
    """How much more than their quotas queues hold, as far as the cluster has lent it to them."""
    found = 0.0
    for at in range(1, b.parent.shape[0]):
        if b.parent[at] == 0:
            found += max(0.0, b.used[at] - b.quota[at])
    return found


@kernel
def _give(b: Books, claims: QuotaClaims, k: int, size: float, holds: Floats) -> None:
    count_in(b, claims.queue[k], claims.user[k], size - holds[k])
    holds[k] = size


@kernel
def _free(b: Books, queue: int, user: int, loans: bool) -> float:
    """How much more a job may have, with what its queues may borrow or without."""
    found = b.user_quota[0] - b.by_user[user]
    at = b.leaf[queue]
    while at > 0:
        found = min(found, (b.limit[at] if loans else b.quota[at]) - b.used[at])
        at = b.parent[at]
    return float(max(0.0, found))


@kernel
def _keep_promises(b: Books, claims: QuotaClaims, lines: QueueLines, room: float, holds: Floats) -> float:
    """Jobs that the plan leaves out, those that run first, where their queue is promised it and has no job in line."""
    for runs in (True, False):
        for k in range(claims.queue.shape[0]):
            if claims.asked[k] > 0.0 or claims.stays[k] == 1 or (claims.held[k] > 0.0) != runs:
                continue
            queue, size = claims.queue[k], claims.held[k] if runs else claims.least[k]
            own, back = b.domain[queue], _lent(b)
            if lines.head[own] >= 0 or size > room + back or b.used[own] + size > b.quota[own]:
                continue
            if within_limits(b, queue, claims.user[k], size):
                _give(b, claims, k, size, holds)
                room -= size
    return float(room)
