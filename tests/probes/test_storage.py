"""Storage bandwidth beside CPUs and memory: booked per node, changed in place, refused where there is too little (Synergy, OSDI 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.errors import GantlineError
from gantline.core.plan import Assignment, Mode, Part, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

READS = "1x4/500s"


@dataclass(frozen=True)
class Reading(Policy):
    """Every job gets the bandwidth that its name says, in MB/s."""

    def decide(self, snapshot: Snapshot) -> Plan:
        wanted = [Assignment(k, storage=float(name.split("-")[1])) for k, name in enumerate(snapshot.jobs.ids)]
        return Plan.assign(wanted, valid_until=FOREVER)


def test_two_jobs_run_side_by_side_only_while_the_node_can_feed_both() -> None:
    run = simulate([job("a-300", 1, 100), job("b-200", 1, 100), job("c-100", 1, 50)], READS, Reading())

    assert [fact(run, name, "first_start") for name in ("a-300", "b-200", "c-100")] == [0.0, 0.0, 100.0]


def test_bandwidth_changes_in_place_and_frees_room_for_another() -> None:
    @dataclass(frozen=True)
    class Less(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            late = snapshot.now >= 10.0
            rows = [Assignment(k, storage=100.0 if late else 500.0) for k in range(len(snapshot.jobs))]
            return Plan.assign(rows, valid_until=FOREVER)

    run = simulate([job("first", 1, 100), job("second", 1, 50, at=10.0)], READS, Less())

    assert spans(run, "first") == [(0.0, 100.0, [0], "finished")]
    assert spans(run, "second") == [(10.0, 60.0, [1], "finished")]


def test_a_policy_sees_what_is_left_of_a_node() -> None:
    seen = []

    @dataclass(frozen=True)
    class Watching(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            seen.append(snapshot.cluster.node_storage_free.tolist())
            return Plan.assign([Assignment(k, storage=120.0) for k in range(len(snapshot.jobs))], valid_until=FOREVER)

    simulate([job("a", 1, 10), job("b", 1, 10, at=1.0)], READS, Watching())

    assert seen[0] == [500.0]
    assert [380.0] in seen


@pytest.mark.parametrize("group", [-1, 0])
def test_roles_and_shared_gangs_book_it_per_node(group: int) -> None:
    @dataclass(frozen=True)
    class Roles(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            if group < 0:
                rows = [Assignment(k, parts=(Part("worker", 0, 2, storage=200.0),)) for k in range(len(snapshot.jobs))]
            else:
                devices = [(0, 1), (0, 1), (2, 3)]
                rows = [Assignment(k, devices=devices[k], group=0, mode=Mode.SPACE, storage=300.0) for k in range(len(snapshot.jobs))]
            return Plan.assign(rows, valid_until=FOREVER)

    run = simulate([job("a", 2, 10), job("b", 2, 10)], "1x4/500s", Roles())

    assert fact(run, "b", "first_start") == fact(run, "a", "finish")  # 400 + 400, or 300 + 300 of 500 MB/s


def test_a_trace_asks_for_it_in_its_column_and_in_its_options(tmp_path) -> None:  # type: ignore[no-untyped-def]
    trace = tmp_path / "jobs.csv"
    trace.write_text("job,arrival,gpus,duration,storage\na,0,1,10,400\nb,0,1,10,200\n")
    assert fact(simulate(trace, READS, "fifo"), "b", "first_start") == 10.0

    trace.write_text("job,arrival,gpus,duration,options\na,0,1,10,gpu:1/0/0/400=10\nb,0,1,10,gpu:1/0/0/200=10|gpu:1/0/0/100=20\n")
    run = simulate(trace, READS, "fifo")
    assert (fact(run, "b", "first_start"), fact(run, "b", "finish")) == (0.0, 20.0)


def test_what_no_node_can_feed_is_refused_before_the_run() -> None:
    with pytest.raises(GantlineError, match="storage"):
        simulate([job("a", 1, 10, storage=600.0)], READS, "fifo")
