"""Quotas: what is promised, what may be borrowed, who gives back. The rule itself, and the engine that applies it under every policy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.admission.quotas import QuotaClaim, QuotaTree
from gantline.core.queues import Queue, ancestors


def tree(capacity, *queues, **more):
    names = list(dict.fromkeys(queue.name for queue in queues)) + list(more.pop("used", ()))
    return QuotaTree(names, {queue.name: queue for queue in queues}, capacity, **more)


def picked(found, *claims, strict=False):
    """Claims as (queue's code, size) that wait, or (code, size, "runs")."""
    made = [QuotaClaim(row, one[0], 0, one[1], runs="runs" in one, fixed="fixed" in one) for row, one in enumerate(claims)]
    return sorted(found.pick(made, strict))


def test_a_queue_borrows_what_is_idle_and_no_more_than_its_limit():
    assert picked(tree(4, Queue("q", quota=2)), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)) == [0, 1, 2, 3]
    assert picked(tree(4, Queue("q", quota=2, borrow=1)), (0, 1), (0, 1), (0, 1), (0, 1)) == [0, 1, 2]
    assert picked(tree(4, Queue("q", quota=2, borrow=False)), (0, 1), (0, 1), (0, 1)) == [0, 1]


def test_a_parents_quota_bounds_the_sum_of_its_children():
    found = tree(8, Queue("research", quota=1, borrow=0), Queue("research/nlp"), Queue("research/vision"))
    assert picked(found, (1, 1), (2, 1), (1, 1)) == [0]


def test_an_owner_that_waits_is_served_before_borrowers_that_run():
    found = tree(4, Queue("a", quota=2), Queue("b", quota=2))
    assert picked(found, (0, 1, "runs"), (0, 1, "runs"), (0, 1, "runs"), (0, 1, "runs"), (1, 1)) == [0, 1, 2, 4]


def test_a_borrower_that_cannot_be_stopped_yet_is_left_alone():
    found = tree(2, Queue("a", quota=0), Queue("b", quota=2))
    assert picked(found, (0, 2, "runs", "fixed"), (1, 1)) == [0]


def test_borrowers_share_by_weight():
    found = tree(9, Queue("a", quota=0), Queue("b", quota=0, weight=2))
    assert picked(found, *[(0, 1, "runs")] * 9, *[(1, 1)] * 9) == [0, 1, 2, *range(9, 15)]


def test_a_large_borrower_is_not_stopped_for_a_share_that_would_leave_it_nothing():
    found = tree(8, Queue("a", quota=0), Queue("b", quota=0))
    assert picked(found, (0, 8, "runs"), (1, 4)) == [0]


def test_borrowing_within_a_parent_comes_before_borrowing_from_outside():
    found = tree(4, Queue("a", quota=4), Queue("a/x", quota=1), Queue("a/y", quota=3), Queue("b", quota=0))
    assert picked(found, (3, 2, "runs"), (1, 4)) == [1]


def test_what_is_promised_to_nobody_belongs_to_the_queues_without_a_quota():
    found = tree(4, Queue("q", quota=2), used=[""])
    assert picked(found, *[(1, 1, "runs")] * 4, (0, 1), (0, 1)) == [0, 1, 4, 5]
    assert picked(found, *[(0, 1, "runs")] * 4, (1, 1), (1, 1)) == [0, 1, 4, 5]


def test_nobody_overtakes_within_a_strict_queue():
    found = tree(4, Queue("q", quota=2, borrow=0))
    claims = [(0, 1, "runs"), (0, 2), (0, 1)]
    assert picked(found, *claims) == [0, 2]
    assert picked(found, *claims, strict=True) == [0]


def test_the_most_that_a_job_can_ever_hold_names_the_queue_that_says_so():
    found = tree(8, Queue("research", quota=3, borrow=1), Queue("research/nlp", quota=2))
    assert found.most(1) == (4.0, "research")
    assert tree(8, Queue("a")).most(0)[0] == math.inf


names = st.sampled_from(["a", "b", "a/x", "a/y", "b/x", ""])
queues = st.builds(
    Queue, names.filter(bool), weight=st.sampled_from([1.0, 2.0]), quota=st.sampled_from([0, 1, 2, 3, 5, math.inf]),
    borrow=st.sampled_from([0, 1, 2, math.inf]),
)  # fmt: skip
claims = st.lists(st.tuples(names, st.integers(1, 4), st.booleans()), max_size=14)


@given(st.lists(queues, max_size=5, unique_by=lambda queue: queue.name), claims, st.integers(1, 8), st.booleans())
def test_the_rule_holds_whatever_is_asked(listed, asked, capacity, strict):
    known = {queue.name: queue for queue in listed}
    used = list(dict.fromkeys([*known, *(name for name, _, _ in asked)]))
    found = QuotaTree(used, known, capacity)
    order = [QuotaClaim(row, used.index(name), 0, size, runs) for row, (name, size, runs) in enumerate(asked)]
    allowed = found.pick(order, strict)
    holds = {name: sum(c.size for c in order if c.row in allowed and name in ancestors(used[c.queue])) for name in known}
    for name, queue in known.items():
        assert holds[name] <= queue.quota + queue.borrow
    assert sum(c.size for c in order if c.row in allowed) <= capacity
    usage = {at: sum(c.size for c in order if c.row in allowed and at in found.paths[c.queue]) for at in range(len(found.nodes))}
    if strict:
        return
    for claim in order:
        if claim.row in allowed or not all(usage[at] + claim.size <= found.nodes[at].quota for at in found.paths[claim.queue]):
            continue  # it is promised what it asks for, and waits: then nobody holds anything by borrowing
        borrowed = [
            other for other in order if other.row in allowed and any(usage[at] > found.nodes[at].quota for at in found.paths[other.queue])
        ]
        assert not borrowed or sum(c.size for c in order if c.row in allowed and c not in borrowed) + claim.size > capacity
    assert allowed == found.pick(order, strict)


@given(st.lists(queues, max_size=5, unique_by=lambda queue: queue.name), claims, st.integers(1, 8))
def test_a_distribution_is_at_rest(listed, asked, capacity):
    """Whoever was allowed runs from then on, and asking again stops nobody: no queue takes turns with another for nothing."""
    known = {queue.name: queue for queue in listed}
    used = list(dict.fromkeys([*known, *(name for name, _, _ in asked)]))
    found = QuotaTree(used, known, capacity)
    order = [QuotaClaim(row, used.index(name), 0, size, False) for row, (name, size, _) in enumerate(asked)]
    running: set[int] = set()
    for _ in range(6):
        before = running
        now = [QuotaClaim(c.row, c.queue, c.user, c.size, c.row in running) for c in sorted(order, key=lambda c: c.row not in before)]
        running = found.pick(now)
        if running == before:
            return
    pytest.fail(f"never at rest: {before} and {running}")
