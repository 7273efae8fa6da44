"""Quotas: what is promised, what may be borrowed, who gives way, and what a plan that assigns may give. The rule itself, by counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.queues import Queue, bounds_in_words, parse_queues
from gantline.policies.admission.arbiter import NOTHING, QuotaClaims, arbitrate, borrows_at, gives_way, within_limits
from gantline.policies.admission.quotas import QuotaTree


def tree(capacity, *queues, **more):
    names = list(dict.fromkeys(queue.name for queue in queues)) + list(more.pop("used", ()))
    return QuotaTree(names, {queue.name: queue for queue in queues}, capacity, **more)


def books(found, *held):
    """Jobs as (queue's code, devices) that hold something, all of one user."""
    queues, sizes = (np.array([one[k] for one in held], dtype=kind) for k, kind in ((0, np.int64), (1, np.float64)))
    return found.books(queues, queues * 0, sizes, 1)


def may_hold(found, capacity, *claims, strict=False):
    """What each of these may hold: (queue's code, held now, least, asked for), and a last "stays" if it cannot be stopped."""
    queue, held, least, asked = (np.array([one[k] for one in claims], dtype=float) for k in range(4))
    stays = np.array([int("stays" in one) for one in claims], dtype=np.int64)
    made = QuotaClaims(queue.astype(np.int64), stays * 0, held, least, asked, stays)
    return arbitrate(found.books(made.queue[:0], made.queue[:0], held[:0], 1), made, capacity, strict).tolist()


AB = tree(4, Queue("a", quota=2, borrow=math.inf), Queue("b", quota=2))


# --- what a queue may hold -----------------------------------------------------------------------------------------------
def test_a_queue_holds_its_quota_and_no_more_unless_it_may_borrow():
    for queue, most in ((Queue("q", quota=2), 2), (Queue("q", quota=2, borrow=1), 3), (Queue("q", quota=2, borrow=math.inf), 9)):
        assert [within_limits(books(tree(9, queue), (0, held)), 0, 0, 1.0) for held in range(9)] == [k < most for k in range(9)]


def test_what_is_promised_to_nobody_belongs_to_the_queues_without_a_quota():
    found = tree(4, Queue("q", quota=2, borrow=math.inf), used=[""])
    assert borrows_at(books(found, (1, 1)), 1, 1.0) == NOTHING
    assert borrows_at(books(found, (1, 2)), 1, 1.0) != NOTHING


def test_the_most_that_a_job_can_ever_hold_names_the_queue_that_says_so():
    found = tree(8, Queue("research", quota=3, borrow=1), Queue("research/nlp", quota=2, borrow=math.inf))
    assert found.most(1) == (4.0, "research")
    assert tree(8, Queue("a")).most(0)[0] == math.inf


# --- who gives way -------------------------------------------------------------------------------------------------------
def test_of_borrowers_the_one_with_more_for_its_weight_gives_way_while_it_keeps_as_much_as_the_other_gets():
    found = tree(9, Queue("a", quota=0, borrow=math.inf), Queue("b", quota=0, borrow=math.inf, weight=2))
    assert gives_way(books(found, (0, 4), (1, 5)), 1, 1.0, 0, 1.0)
    assert not gives_way(books(found, (0, 3), (1, 6)), 1, 1.0, 0, 1.0)
    assert not gives_way(books(found, (0, 9)), 1, 4.0, 0, 9.0)  # it would be left with nothing


def test_a_child_may_use_what_its_parent_is_promised_before_others_borrow_it():
    x, b = 1, 3
    found = tree(4, Queue("a", quota=4), Queue("a/x", quota=1, borrow=3), Queue("a/y", quota=3), Queue("b", quota=0, borrow=4))
    assert gives_way(books(found, (b, 2)), x, 4.0, b, 2.0)
    assert not gives_way(books(found, (x, 4)), b, 1.0, x, 4.0)


# --- plans that assign ---------------------------------------------------------------------------------------------------
def test_who_is_asked_for_within_the_promise_comes_before_who_would_borrow():
    assert may_hold(AB, 4, (0, 0, 1, 3), (1, 0, 2, 2)) == [2, 2]


def test_who_runs_keeps_what_it_has_although_a_smaller_job_of_its_queue_would_borrow_nothing():
    found = tree(4, Queue("a", quota=1, borrow=1), Queue("b", quota=3))
    assert may_hold(found, 4, (0, 2, 2, 2), (0, 0, 1, 1)) == [2, 0]


def test_an_owner_that_the_plan_drops_for_a_borrower_goes_on():
    assert may_hold(AB, 4, (0, 0, 3, 3), (1, 2, 2, 0)) == [0, 2]
    assert may_hold(AB, 4, (0, 3, 3, 3), (1, 2, 2, 0), (1, 0, 1, 0)) == [3, 2, 0]


@pytest.mark.parametrize(("strict", "held"), [(False, [0, 1]), (True, [0, 0])])
def test_nobody_passes_within_a_strict_queue(strict, held):
    assert may_hold(tree(4, Queue("q", quota=2)), 4, (0, 1, 1, 1), (0, 0, 2, 2), (0, 0, 1, 1), strict=strict)[1:] == held


names = st.sampled_from(["a", "b", "a/x", "a/y", "b/x", ""])
queues = st.builds(
    Queue, names.filter(bool), weight=st.sampled_from([1.0, 2.0]), quota=st.sampled_from([0, 1, 2, 3, 5, math.inf]),
    borrow=st.sampled_from([0, 1, 2, math.inf]),
)  # fmt: skip
jobs = st.lists(st.tuples(names, st.integers(0, 3), st.integers(1, 3), st.integers(0, 4)), max_size=12)


@given(st.lists(queues, max_size=5, unique_by=lambda queue: queue.name), jobs, st.integers(1, 8), st.booleans())
def test_no_new_grant_brings_a_queue_above_its_limit_whatever_is_asked(listed, asked, capacity, strict):
    known = {queue.name: queue for queue in listed}
    used = list(dict.fromkeys([*known, *(name for name, *_ in asked)]))
    found = QuotaTree(used, known, capacity)
    claims = [(used.index(name), held, min(least, more) if more else least, more) for name, held, least, more in asked]
    holds = may_hold(found, capacity, *claims, strict=strict)
    for at in range(1, len(found.nodes)):
        mine = [k for k, claim in enumerate(claims) if at in found.paths[claim[0]]]
        before, after = sum(claims[k][1] for k in mine), sum(holds[k] for k in mine)
        assert after <= max(found.nodes[at].limit, before)
    assert sum(holds) <= max(capacity, sum(claim[1] for claim in claims))


# --- how queues are written ----------------------------------------------------------------------------------------------
def test_a_queue_borrows_nothing_unless_it_is_said_and_that_is_said_back():
    found = parse_queues("a=2,b=2:1,c=2:inf:3")
    assert [(queue.quota, queue.borrow, queue.weight) for queue in found.values()] == [(2, 0, 1), (2, 1, 1), (2, math.inf, 3)]
    assert [bounds_in_words(queue.quota, queue.borrow) for queue in found.values()] == [
        "may hold 2 devices: 2 are promised, and it borrows none",
        "may hold 3 devices: 2 are promised, and 1 may be borrowed",
        "is promised 2 devices, and may borrow whatever others leave idle",
    ]
