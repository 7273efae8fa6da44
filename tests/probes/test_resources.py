"""What jobs take of nodes and devices beside the devices themselves: CPUs, storage bandwidth, device memory, and what changes in place."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.probes.scenario import ALONE, Says, each, every, fact, facts, in_steps, job, spans

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.errors import GantlineError, RefusedError, TraceError, UsageError
from gantline.core.inputs import Submit
from gantline.core.plan import Assignment, Mode, Part, Plan
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.engine import Engine
from gantline.engine.executor import Can, Order
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.models.model import Gang, PerformanceModel
from gantline.policies.placement.rules import find_placement
from gantline.simulator.simulate import simulate
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace


@pytest.mark.parametrize("newcomers_first", [False, True])
def test_the_old_job_shrinks_for_the_new_one_and_grows_again(newcomers_first: bool) -> None:
    """Synergy: a running job gives CPUs up to a neighbour without a restart, and gets them back (Mohan et al., OSDI 2022)."""

    class HungryForCpus(PerformanceModel):
        """Speed is proportional to CPUs, up to six."""

        def granted(self, gang: Gang) -> float:
            return min(gang.grant.assignment.cpus, 6.0) / 6.0

    def share(snapshot: Snapshot) -> list[Assignment]:
        """Everybody gets its demand if it fits, else the proportional share of the node's CPUs."""
        count = len(snapshot.jobs)
        rows = [Assignment(k, cpus=6.0 if count == 1 else 4.0) for k in range(count)]
        return rows[::-1] if newcomers_first else rows

    jobs = [job("old", 1, 100, cpus=6.0), job("new", 1, 40, at=50.0, cpus=6.0)]
    run = simulate(jobs, "1x2/8c", Says(share), performance=HungryForCpus(), costs="resume=60,move=60,resize=60")

    assert spans(run, "new") == [(50.0, pytest.approx(110.0), [1], "finished")]
    assert spans(run, "old") == [(0.0, pytest.approx(120.0), [0], "finished")]  # 50, then 40 at two thirds, then 10
    assert fact(run, "old", "restarts") == 0


# Storage bandwidth: booked per node, changed in place, refused where there is too little (Synergy).
READS = "1x4/500s"


def test_two_jobs_run_side_by_side_only_while_the_node_can_feed_both() -> None:
    policy = each(lambda snapshot, k: {"storage": float(snapshot.jobs.ids[k])})
    run = simulate([job("300", 1, 100), job("200", 1, 100), job("100", 1, 50)], READS, policy)

    assert facts(run, "first_start") == {"300": 0.0, "200": 0.0, "100": 100.0}


def test_bandwidth_changes_in_place_and_frees_room_for_another() -> None:
    run = simulate([*ALONE, job("second", 1, 50, at=10.0)], READS, in_steps("storage", {0.0: 500.0, 10.0: 100.0}))

    assert spans(run, "a") == [(0.0, 100.0, [0], "finished")]
    assert spans(run, "second") == [(10.0, 60.0, [1], "finished")]


def test_a_policy_sees_what_is_left_of_a_node() -> None:
    seen = []

    def look(snapshot: Snapshot, k: int) -> dict[str, Any]:
        seen.append(snapshot.cluster.node_storage_free.tolist())
        return {"storage": 120.0}

    simulate([job("a", 1, 10), job("b", 1, 10, at=1.0)], READS, each(look))

    assert seen[0] == [500.0]
    assert [380.0] in seen


@pytest.mark.parametrize("shared", [False, True])
def test_roles_and_shared_gangs_book_it_per_node(shared: bool) -> None:
    roles = {"parts": (Part("worker", 0, 2, storage=200.0),)}
    group = {"devices": (0, 1), "group": 0, "mode": Mode.SPACE, "storage": 300.0}
    run = simulate([job("a", 2, 10), job("b", 2, 10)], READS, every(**(group if shared else roles)))

    assert fact(run, "b", "first_start") == fact(run, "a", "finish")  # 400 + 400, or 300 + 300 of 500 MB/s


def test_a_trace_asks_for_it_in_its_column_and_in_its_options(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job,arrival,gpus,duration,storage\na,0,1,10,400\nb,0,1,10,200\n")
    assert fact(simulate(trace, READS, "fifo"), "b", "first_start") == 10.0

    trace.write_text("job,arrival,gpus,duration,options\na,0,1,10,gpu:1/0/0/400=10\nb,0,1,10,gpu:1/0/0/200=10|gpu:1/0/0/100=20\n")
    run = simulate(trace, READS, "fifo")
    assert (fact(run, "b", "first_start"), fact(run, "b", "finish")) == (0.0, 20.0)


def test_what_no_node_can_feed_is_refused_before_the_run() -> None:
    with pytest.raises(GantlineError, match="storage"):
        simulate([job("a", 1, 10, storage=600.0)], READS, "fifo")


# Device memory: what gangs take of their devices is booked, and more than there is is refused with the amounts.
PAIR = [job("host", 1, 100, device_memory=60), job("guest", 1, 100, device_memory=60)]
LARGE = "h100:1x1/80d"


def side_by_side(caps: list[tuple[float, float]] | None = None, **place: Any) -> Policy:
    """All jobs share, on the first device or where the engine puts them; `caps` by row: before 50 s and from then on."""
    place = place or {"devices": (0,)}

    def terms(snapshot: Snapshot, k: int) -> dict[str, Any]:
        cap = {"memory_cap": caps[int(snapshot.jobs.rows[k])][snapshot.now >= 50.0]} if caps else {}
        return {"mode": Mode.SPACE, "fraction": 0.5, **place, **cap}

    return each(terms, *[50.0] * bool(caps))


def test_sixty_and_sixty_do_not_fit_on_eighty_and_the_amounts_are_said() -> None:
    run = simulate(PAIR, LARGE, side_by_side())

    assert spans(run, "host") == [(0.0, 200.0, [0], "finished")]  # half of the device is its own
    assert fact(run, "guest", "first_start") == 200.0
    assert "'guest' needs 60 GB of device memory, and node0:0 has 80 GB, of which 60 GB are taken" in run.incidents[0]


def test_where_the_cluster_does_not_say_nothing_is_counted() -> None:
    assert fact(simulate(PAIR, "h100:1x1", side_by_side()), "guest", "first_start") == 0.0


def test_the_engine_puts_a_guest_where_memory_is_left() -> None:
    run = simulate([*PAIR, job("small", 1, 100, device_memory=20)], "h100:1x2/80d", side_by_side(group=0, size=2))

    assert [spans(run, name)[0][:3] for name in ("host", "guest")] == [(0.0, 200.0, [0]), (0.0, 200.0, [1])]
    assert fact(run, "small", "first_start") == 0.0


@pytest.mark.parametrize(
    ("caps", "start"), [([(40.0, 40.0)] * 2, 0.0), ([(60.0, 30.0), (50.0, 50.0)], 50.0)], ids=["from the start", "given up later"]
)
def test_a_cap_is_booked_instead_of_what_the_job_needs(caps: list[tuple[float, float]], start: float) -> None:
    run = simulate(PAIR, LARGE, side_by_side(caps))

    assert (fact(run, "guest", "first_start"), fact(run, "host", "restarts")) == (start, 0)


def test_a_cap_that_is_raised_beyond_what_is_left_stays_as_it_was_with_the_reason() -> None:
    seen: list[tuple[float, int]] = []

    @dataclass(frozen=True)
    class Watched(Policy):
        inner: Policy

        def decide(self, snapshot: Snapshot) -> Plan:
            grant = snapshot.jobs.grant(0)
            if snapshot.now >= 60.0 and grant is not None:
                seen.append((grant.assignment.memory_cap, int(snapshot.jobs.reason[0])))
            return self.inner.decide(snapshot)

    caps = [(40.0, 70.0), (40.0, 40.0), (1.0, 1.0)]
    simulate([*PAIR, job("late", 1, 10, at=60.0, device_memory=90)], "h100:1x1/100d", Watched(side_by_side(caps)))

    assert seen[0] == (40.0, int(Reason.DEVICE_MEMORY))


def test_a_job_that_no_device_can_hold_is_refused_before_the_run_with_the_amount() -> None:
    with pytest.raises(TraceError, match=r"'host' needs 60 GB of device memory .* devices have v100 32 GB \(2 such jobs\)"):
        simulate(PAIR, "v100:1x1/32d", "fifo")


def test_a_gang_of_its_own_cannot_have_more_than_a_device_has() -> None:
    run = simulate(ALONE, LARGE, every(memory_cap=100.0), until=50.0)

    assert spans(run, "a") == []
    assert "needs 100 GB of device memory, and node0:0 has 80 GB" in run.incidents[0]


def test_options_on_devices_that_are_too_small_are_left_out() -> None:
    run = simulate([job("a", 1, 100, options="v100:1=100|h100:1=50", device_memory=60)], "v100:1x1/32d,h100:1x1/80d", "fifo")

    assert spans(run, "a") == [(0.0, 50.0, [1], "finished")]
    assert run.summary["left_out_options"] == 1


def test_a_submitted_job_that_no_device_can_hold_is_refused_with_the_amount() -> None:
    late = Submit(5.0, {"id": "late", "gpus": 1, "metrics": {"device_memory": 60.0}}, work=10.0)

    with pytest.raises(RefusedError, match="'late' needs 60 GB of device memory, and v100 has 32"):
        simulate(ALONE, "v100:1x1/32d", "fifo", inputs=[late])


def test_devices_of_one_type_have_one_size() -> None:
    assert parse_cluster("v100:4x8/24c/500g/500s/32d@r1,cpu:1x0").device_memory == (32.0, 0.0)
    with pytest.raises(UsageError, match="devices of type 'v100' have 16 and 32 GB"):
        parse_cluster("v100:1x1/16d,v100:1x1/32d")


# Other terms: orders to a gang that runs, and no stop and start.
TERMS = [("cpus", 2.0, Can.TERMS), ("memory_cap", 20.0, Can.TERMS), ("offset", 0.5, Can.TERMS), ("fraction", 0.5, Can.SHARE)]
NODE = "1x1/8c/80d"


def later(name: str, value: float) -> Policy:
    """A job on the first device; from 40 s on on other terms."""
    said = {"devices": (0,), "mode": Mode.SPACE, "fraction": 0.9}
    return each(lambda snapshot, k: {**said, **({name: value} if snapshot.now >= 40.0 else {})}, 40.0)


@dataclass
class Noted(FaultyExecutor):
    """Keeps the orders that it was sent."""

    sent: list[Order] = field(default_factory=list)

    def send(self, order: Order, now: float) -> None:
        self.sent.append(order)
        super().send(order, now)


@pytest.mark.parametrize(("name", "value", "ability"), TERMS)
def test_other_terms_restart_nothing_on_either_clock(name: str, value: float, ability: Can) -> None:
    run = simulate([job("a", 1, 90)], NODE, later(name, value))

    assert (fact(run, "a", "restarts"), fact(run, "a", "preemptions")) == (0, 0)


@pytest.mark.parametrize("able", [True, False], ids=["an executor that can", "one that cannot"])
@pytest.mark.parametrize(("name", "value", "ability"), TERMS)
def test_an_executor_gets_the_new_terms_as_an_order_and_what_it_cannot_do_is_a_stop_and_a_start(
    name: str, value: float, ability: Can, able: bool
) -> None:
    tables = load_tables(Trace.from_records([job("a", 1, 90)]), parse_cluster(NODE))
    engine = Engine(State(tables, Regime(), find_placement("first-free")), later(name, value))
    executor = Noted(tables.F[Job.WORK].copy(), Faults(), able=frozenset(Can) if able else frozenset(Can) - {ability})
    Simulation(engine, until=1000.0, driver=Acknowledged(engine, executor)).run()

    assert int(tables.I[Job.RESTARTS, 0]) == (0 if able else 1)
    assert executor.breaches == []
    assert [getattr(order.grant.assignment, name) == value for order in executor.sent if order.grant is not None][-1]
