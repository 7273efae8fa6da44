"""Gangs that grow where they are, or move as a whole; groups that share so many devices and no more."""

from __future__ import annotations

import pytest
from tests.engine.states import commit, engine_of
from tests.jobs import gangs
from tests.oracles.books import check_books
from tests.probes.scenario import Says, each

from gantline import Assignment, Mode, Part, Policy, simulate
from gantline.core.columns import Job
from gantline.core.facts import Costs
from gantline.core.reasons import Reason
from gantline.models.model import Gang, PerformanceModel


@pytest.mark.parametrize("required", [True, False])
def test_a_gang_whose_node_is_full_moves_as_a_whole_rather_than_being_split(required: bool) -> None:
    engine = engine_of(gangs(2, 2), "2x4")
    both = [Assignment(0, gpus=2, nodes=(0,)), Assignment(1, gpus=2, nodes=(0,))]
    commit(engine, both, at=0.0)
    commit(engine, [Assignment(0, gpus=4, within="node", required=required), both[1]], at=10.0)
    assert engine.grants.devices(0) == (4, 5, 6, 7)
    assert engine.state.tables.I[Job.RESTARTS, 0] == 1
    assert check_books(engine.state, engine.grants) == []


SPREAD, MOVED = (0, 1, 4, 5), (4, 5, 6, 7)


@pytest.mark.parametrize(
    ("placement", "sensitive", "devices"),
    [
        ("consolidated", False, MOVED), ("consolidated:preferred", False, MOVED), ("first-free", True, SPREAD), ("skew", True, MOVED),
        ("skew", False, SPREAD),
    ],
)  # fmt: skip
def test_the_placement_rule_says_whether_growing_is_worth_a_move(placement: str, sensitive: bool, devices: tuple[int, ...]) -> None:
    engine = engine_of(gangs(2, 2), "2x4", placement=placement)
    engine.state.tables.I[Job.CONSOLIDATE] = int(sensitive)
    commit(engine, [Assignment(0), Assignment(1)], at=0.0)
    commit(engine, [Assignment(0, gpus=4), Assignment(1)], at=10.0)
    assert engine.grants.devices(0) == devices
    assert engine.grants.devices(1) == (2, 3)
    assert check_books(engine.state, engine.grants) == []


def test_servers_leave_the_cpus_that_workers_need() -> None:
    engine = engine_of(gangs(1), "gpu:1x2/4c,gpu:1x0/8c")
    parts = (Part("ps", 0, 2, gpus=0, cpus=2.0), Part("worker", 0, 2, gpus=1, cpus=2.0))
    commit(engine, [Assignment(0, parts=parts)], at=0.0)
    assert engine.grants.devices(0) == (0, 1)
    assert {worker.node for worker in engine.grants.by_row[0].workers if worker.role == "ps"} == {1}


def test_a_policy_sees_why_a_gang_did_not_grow() -> None:
    engine = engine_of(gangs(2, 2), "1x4")
    commit(engine, [Assignment(0), Assignment(1)], at=0.0)
    commit(engine, [Assignment(0, gpus=4), Assignment(1)], at=10.0)
    assert engine.state.snapshot().jobs.reason.tolist() == [Reason.RESOURCES, Reason.NONE]
    assert engine.grants.devices(0) == (0, 1)
    commit(engine, [Assignment(0), Assignment(1)], at=20.0)
    assert engine.state.snapshot().jobs.reason.tolist() == [Reason.NONE, Reason.NONE]


def one_group(size: int) -> Policy:
    """All jobs in one time-shared group of so many devices."""
    return each(lambda snapshot, k: {"group": 0, "mode": Mode.TIME, "size": size, "share": min(1.0, size / len(snapshot.jobs))})


def test_a_group_stacks_only_as_far_as_its_size() -> None:
    run = simulate(gangs(*[1] * 16), "1x8", one_group(8))
    assert run.jobs["finish"].to_list() == pytest.approx([2000.0] * 16)
    assert run.jobs["restarts"].sum() == run.jobs["preemptions"].sum() == 0


def test_members_of_a_sized_group_stay_when_others_end() -> None:
    lengths = [100.0] * 4 + [1000.0] * 4
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": d} for k, d in enumerate(lengths)]
    run = simulate(rows, "1x4", one_group(4))
    assert run.jobs["finish"].to_list() == pytest.approx([200.0] * 4 + [1100.0] * 4)
    assert run.jobs["restarts"].sum() == 0


HUNDREDS = (100.0, 200.0, 300.0, 400.0)


def test_a_stop_is_a_turn_if_the_next_plan_names_another_of_the_group() -> None:
    turns = Says(lambda snapshot: [Assignment(int(snapshot.now // 100) % 2, group=0, mode=Mode.TIME)], HUNDREDS)
    run = simulate(gangs(1, 1), "1x1", turns, until=450.0)
    assert run.jobs["preemptions"].to_list() == [0, 0]
    assert run.allocations["reason"].to_list() == ["turn"] * 4 + ["end"]


def test_a_turn_of_a_time_shared_group_is_no_preemption_and_costs_a_switch() -> None:
    """Three jobs, two of them at a time."""
    two = Says(
        lambda snapshot: [Assignment(k, group=0, mode=Mode.TIME, size=2) for k in range(3) if k != int(snapshot.now // 100) % 3], HUNDREDS
    )
    run = simulate(gangs(1, 1, 1), "1x2", two, until=350.0, costs=Costs(resume=50.0, switch=5.0))
    assert run.jobs["preemptions"].sum() == 0
    assert run.tables.F[Job.SERVICE].tolist() == pytest.approx(
        [200.0, 245.0, 245.0]
    )  # two have been out once, and came back after five seconds


class Company(PerformanceModel):
    """Each mate beside it takes as much of the link as the gang itself."""

    def granted(self, gang: Gang) -> float:
        return 1.0 / (1 + len(gang.mates))


def test_who_may_not_be_touched_is_faster_at_once_when_a_mate_leaves_the_group_and_stays_where_it_is() -> None:
    engine = engine_of(gangs(1, 1), "1x2", performance=Company())
    commit(engine, [Assignment(0, group=0), Assignment(1, group=0)], at=0.0)
    rate = engine.state.tables.F[Job.RATE]
    assert rate.tolist() == [0.5, 0.5]
    engine.state.tables.I[Job.LOCKED, 1] = 1  # the plan does not change it, so that only the one who leaves can tell
    commit(engine, [Assignment(0), Assignment(1, group=0)], at=10.0)
    assert (engine.grants.devices(0), engine.grants.devices(1)) == ((0,), (1,))
    assert rate.tolist() == [1.0, 1.0]
    assert engine.state.tables.F[Job.DUE, 1] == pytest.approx(10.0 + 1000.0 - 5.0)
