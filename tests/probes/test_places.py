"""Where a gang goes: nodes, racks and pools, numbers of nodes, roles on nodes of their own, named devices in rank order, what moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.engine.states import commit, engine_of, state_of
from tests.probes.scenario import FOREVER, each, every, fact, in_steps, job, spans, step_of

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Device, Job
from gantline.core.errors import TraceError
from gantline.core.inputs import NodeEvent
from gantline.core.options import Option, OptionTable
from gantline.core.plan import Assignment, Mode, Part, Plan
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.engine.engine import Engine
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace

RACKS = "2x2@east,2x2@west"


def in_a_rack(required: bool = True) -> Policy:
    """Every gang of several within one rack."""
    return each(lambda snapshot, k: {"within": "rack" if snapshot.jobs.gpus[k] > 1 else "", "required": required})


def test_a_gang_that_must_stay_in_a_rack_gets_the_rack_that_has_room() -> None:
    run = simulate([job("small", 1, 50), job("gang", 4, 100)], RACKS, in_a_rack())

    assert spans(run, "gang") == [(0.0, 100.0, [4, 5, 6, 7], "finished")]


@pytest.mark.parametrize(("required", "start"), [(True, 50.0), (False, 0.0)])
def test_a_preference_gives_way_and_a_must_waits(required: bool, start: float) -> None:
    jobs = [job("one", 1, 50), job("two", 4, 60), job("more", 1, 50), job("gang", 3, 100)]

    assert spans(simulate(jobs, "1x4@east,1x5@west", in_a_rack(required)), "gang")[0][0] == start


def test_a_must_that_fails_has_its_reason() -> None:
    engine = engine_of([job("a", 1), job("b", 1), job("gang", 4)], RACKS)
    commit(engine, [Assignment(0, nodes=(0,)), Assignment(1, nodes=(2,)), Assignment(2, within="rack", required=True)])

    assert Reason(int(engine.state.tables.I[Job.REASON, 2])) is Reason.FRAGMENTED


def test_a_running_gang_that_spans_racks_moves_when_it_must_be_together() -> None:
    engine = engine_of([job("gang", 2, 100)], RACKS)
    commit(engine, [Assignment(0, devices=(0, 4))])
    commit(engine, [Assignment(0, within="rack", required=False)], at=10.0)
    assert engine.grants.devices(0) == (0, 4)  # a preference moves no gang
    commit(engine, [Assignment(0, within="rack", required=True)], at=20.0)

    assert engine.grants.devices(0) == (0, 1)


def test_pools_are_places_too() -> None:
    cluster = Cluster((Node("a", gpus=1, pool="own"), Node("b", gpus=2, pool="lent"), Node("c", gpus=2, pool="lent")))
    engine = engine_of([job("gang", 4)], cluster)
    commit(engine, [Assignment(0, within="pool", required=True)])

    assert engine.grants.devices(0) == (1, 2, 3, 4)


def test_one_node_or_none() -> None:
    engine = engine_of([job("gang", 3)], RACKS)
    commit(engine, [Assignment(0, within="node", required=True)])
    assert engine.grants.devices(0) == ()
    commit(engine, [Assignment(0, within="node")])
    assert engine.grants.devices(0) == (0, 1, 2)


@pytest.mark.parametrize(
    ("span", "devices"), [(1, [0, 1, 2, 3]), (2, [0, 1, 4, 5]), (3, [0, 1, 4, 8]), (4, [0, 4, 8, 12])], ids="{} nodes".format
)
def test_a_gang_of_four_on_so_many_nodes(span: int, devices: list[int]) -> None:
    run = simulate([job("a", 4, 100)], "4x4", every(span=span))

    assert spans(run, "a") == [(0.0, 100.0, devices, "finished")]


def test_a_gang_that_spans_another_number_of_nodes_moves() -> None:
    run = simulate([job("a", 4, 100)], "2x4", in_steps("span", {0.0: 1, 50.0: 2}))

    assert spans(run, "a") == [(0.0, 50.0, [0, 1, 2, 3], "moved"), (50.0, 100.0, [0, 1, 4, 5], "finished")]
    assert fact(run, "a", "restarts") == 1


def test_named_devices_must_be_on_so_many_nodes() -> None:
    def run(*devices: int) -> Any:
        return simulate([job("a", 2, 100)], "2x2", every(devices=devices, span=2), until=150.0)

    assert spans(run(0, 1), "a") == []
    assert fact(run(0, 2), "a", "finish") == 100.0


@pytest.mark.parametrize("span", [3, 5], ids=["more nodes than devices", "more than there are"])
def test_what_can_never_be_is_not_started(span: int) -> None:
    assert spans(simulate([job("a", 2, 100)], "4x4", every(span=span), until=50.0), "a") == []


def test_a_group_shares_devices_on_so_many_nodes() -> None:
    run = simulate([job("a", 2, 100), job("b", 2, 100)], "2x2", every(group=0, mode=Mode.SPACE, span=2))

    assert spans(run, "a") == spans(run, "b") == [(0.0, 200.0, [0, 2], "finished")]


def test_an_option_of_a_trace_says_on_how_many_nodes_it_is_that_fast() -> None:
    run = simulate([job("a", 4, 100, options="gpu:4@2=80|gpu:4@1=100")], "gpu:2x4", "fifo")

    assert spans(run, "a") == [(0.0, 80.0, [0, 1, 4, 5], "finished")]


def test_an_option_on_more_nodes_than_there_are_is_left_out_and_a_job_without_another_refused() -> None:
    run = simulate([job("a", 4, 100, options="gpu:4@4=50|gpu:4@2=100")], "gpu:2x4", "fifo")

    assert run.summary["left_out_options"] == 1
    assert fact(run, "a", "finish") == 100.0
    with pytest.raises(TraceError, match="can never run"):
        simulate([job("a", 4, 100, options="gpu:4@4=50")], "gpu:2x4", "fifo")


@pytest.mark.parametrize(("option", "per_node"), [(0, [4]), (1, [2, 2])])
def test_the_number_of_nodes_is_part_of_a_configuration(option: int, per_node: list[int]) -> None:
    """As Sia has them: type, nodes, count, with a batch size that the performance model knows (SOSP 2023)."""
    tables = load_tables(Trace.from_records([job("gpt", 4)]), parse_cluster("3x4"))
    tables.options = OptionTable.build([Option(0, 4, nodes=1), Option(0, 4, rate=0.8, nodes=2)])
    tables.I[Job.OPTION_COUNT, 0] = 2
    engine = Engine(state_of(tables), every(option=option, batch=64, within="rack"))
    plan: Any = engine.decide()
    engine.commit(plan)

    devices = engine.grants.devices(0)
    assert np.unique(tables.D[Device.NODE, list(devices)], return_counts=True)[1].tolist() == per_node
    assert engine.state.snapshot().jobs.grant(0).assignment.batch == 64  # type: ignore[union-attr]


def test_cpus_that_are_not_there_are_not_given() -> None:
    """AlloX: a job may run on a CPU node or on a GPU; which one is a row of its options (EuroSys 2020)."""
    jobs = [job(f"j{k}", work=50, options="gpu:1/4=50|cpu:0/8=100") for k in range(3)]
    run = simulate(jobs, "gpu:1x1/4c,cpu:1x0/20c", every(option=1, nodes=(1,)))

    assert sorted(run.jobs["first_start"].to_list()) == [0.0, 0.0, 100.0]


# Parameter servers plus workers: one grant with two roles, on CPU nodes and GPU nodes (Optimus, Peng et al., EuroSys 2018).
class ServersAndWorkers(PerformanceModel):
    """Optimus' synchronous speed, f(p, w) = w / (1 + w / p), relative to one of each."""

    def granted(self, gang: Gang) -> float:
        p, w = (sum(worker.role == role for worker in gang.grant.workers) for role in ("ps", "worker"))
        return w / (1 + w / p) / 0.5


def with_servers(work: float, steps: dict[float, tuple[int, int]], **more: Any) -> Any:
    """A run of a job with so many servers and workers from each time on."""

    def terms(snapshot: Snapshot, k: int) -> dict[str, Any]:
        servers, workers = step_of(steps, snapshot)
        return {"parts": (Part("ps", 1, servers, gpus=0, cpus=4.0), Part("worker", 0, workers, cpus=1.0))}

    return simulate([job("mx", 1, work)], "gpu:2x2/4c,cpu:2x0/8c", each(terms, *steps), performance=ServersAndWorkers(), **more)


def test_servers_sit_on_cpu_nodes_and_workers_on_gpus() -> None:
    assert spans(with_servers(120, {0.0: (1, 2)}), "mx") == [(0.0, pytest.approx(90.0), [0, 1], "finished")]  # 2 / (1 + 2) / 0.5 = 4/3


def test_a_server_and_a_worker_more_leave_the_others_where_they_are() -> None:
    run = with_servers(200, {0.0: (1, 2), 30.0: (3, 3), 60.0: (3, 1)}, costs="resize=5,resume=60")

    done = 30 * 4 / 3 + 25 * 3 / 2 / 0.5
    assert spans(run, "mx") == [
        (0.0, 30.0, [0, 1], "resized"),
        (30.0, 60.0, [0, 1, 2], "resized"),
        (60.0, pytest.approx(65.0 + (200 - done) / (1 / (1 + 1 / 3) / 0.5)), [0], "finished"),
    ]
    assert fact(run, "mx", "restarts") == 0


def test_a_grant_is_whole_or_nothing() -> None:
    run = with_servers(100, {0.0: (5, 1), 40.0: (4, 1)})

    assert fact(run, "mx", "first_start") == 40.0  # sixteen CPUs carry four servers of four


def test_losing_the_node_of_a_server_stops_the_whole_grant() -> None:
    run = with_servers(100, {0.0: (1, 2)}, node_events=[NodeEvent(10.0, "node2", "down")], costs="checkpoint=1000")

    assert spans(run, "mx")[0] == (0.0, 10.0, [0, 1], "node-lost")
    assert fact(run, "mx", "work_lost") == pytest.approx(10 * 4 / 3)
    assert fact(run, "mx", "finish") == pytest.approx(10.0 + 75.0)  # again from the start, its server on the other node


def test_ranks_are_logged_as_the_plan_ordered_them() -> None:
    """MAPA: the policy reads the link graph and names the devices of a ring, in rank order (SC 2021)."""
    links = tuple(Link(f"node0:{a}", f"node0:{b}", 12.0, "pcie") for a in range(5) for b in range(a + 1, 5))
    run = simulate([job("ring", 3, 100)], Cluster((Node("node0", gpus=5),), links), every(devices=(4, 1, 3)))

    assert spans(run, "ring") == [(0.0, 100.0, [4, 1, 3], "finished")]


def test_one_worker_comes_home_then_another_joins() -> None:
    """A resize that moves one worker: the others stay where they are, the gang pauses and goes on (ElasticFlow, EDL)."""
    steps = {0.0: (0, 1, 4), 50.0: (0, 1, 2), 100.0: (0, 1, 2, 3)}
    run = simulate([job("elastic", 3, 200)], "2x4", in_steps("devices", steps), costs="move=5,resize=10,resume=60")

    assert spans(run, "elastic") == [
        (0.0, 50.0, [0, 1, 4], "moved"),
        (50.0, 100.0, [0, 1, 2], "resized"),
        (100.0, pytest.approx(188.75), [0, 1, 2, 3], "finished"),  # 95 done by 100 s, a pause of ten, then 4/3 as fast
    ]
    assert (fact(run, "elastic", "preemptions"), fact(run, "elastic", "restarts")) == (0, 0)


def test_ranks_follow_the_plan_even_when_only_their_order_changes() -> None:
    run = simulate([job("ring", 3, 40)], "1x4", in_steps("devices", {0.0: (2, 0, 1), 10.0: (1, 2, 3)}))

    assert [devices for _, _, devices, _ in spans(run, "ring")] == [[2, 0, 1], [1, 2, 3]]


def test_a_gang_that_goes_to_other_devices_altogether_starts_again_and_pays_for_the_move() -> None:
    policy = in_steps("devices", {0.0: (0, 1), 40.0: (2, 3)})
    run = simulate([job("gang", 2, 100)], "2x2", policy, costs="move=7,resume=60,start=1")

    assert spans(run, "gang") == [(0.0, 40.0, [0, 1], "moved"), (40.0, pytest.approx(108.0), [2, 3], "finished")]
    assert (fact(run, "gang", "restarts"), fact(run, "gang", "preemptions")) == (1, 0)


def test_a_gang_grows_at_home_first_and_gives_up_its_last_ranks_first() -> None:
    sizes = {0.0: 2, 50.0: 5, 100.0: 3}
    policy = each(lambda snapshot, k: {"gpus": step_of(sizes, snapshot), "within": "node"}, *sizes)
    run = simulate([job("elastic", 2, 300)], "2x4", policy, costs="resize=10")

    assert [devices for _, _, devices, _ in spans(run, "elastic")] == [[0, 1], [0, 1, 2, 3, 4], [0, 1, 2]]
    assert fact(run, "elastic", "finish") == pytest.approx(110.0 + (300 - 50 - 40 * 2.5) / 1.5)


class Reclaim(Policy):
    """From 50 s on two servers of the inference pool go back, cheapest first: a job costs 1 / (servers it is on) on each."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        seats = {k: {int(cluster.device_node[d]) for d in jobs.devices(k)} for k in range(len(jobs))}
        leaving: set[int] = set()
        if snapshot.now >= 50.0:
            lent = {n for n, node in enumerate(cluster.description.nodes) if node.pool == "inference"}
            leaving = {n for n in lent if not cluster.node_up[n]}
            while len(leaving) < 2:
                left = {k: on - leaving for k, on in seats.items() if on and not on & leaving}
                cost = {n: sum(1 / len(on) for on in left.values() if n in on) for n in lent - leaving}
                leaving.add(min(cost, key=lambda n: (cost[n], n)))
        stays = [k for k, on in seats.items() if on and not on & leaving]
        rows = [Assignment(k, devices=jobs.devices(k)) for k in stays]
        rows += [Assignment(k) for k in seats if k not in stays and cluster.free]
        return Plan.assign(rows, release=tuple(sorted(leaving)), valid_until=50.0 if snapshot.now < 50.0 else FOREVER)


def test_the_two_servers_of_one_job_go_back_and_only_that_job_is_stopped() -> None:
    """Lyra: servers on loan go back; the choice that stops fewest jobs is the two servers of one job (EuroSys 2023)."""
    pools = Cluster((Node("own", gpus=2, pool="training"), *(Node(f"lent{k}", gpus=2, pool="inference") for k in range(4))))
    jobs = [job("home", 2, 90), job("one", 2, 80), job("two", 2, 200), job("wide", 4, 100)]
    run = simulate(jobs, pools, Reclaim(), costs="resume=10")

    assert [spans(run, name)[0][3] for name in ("home", "one", "two")] == ["finished"] * 3
    assert spans(run, "wide") == [
        (0.0, 50.0, [6, 7, 8, 9], "preempted"),
        (90.0, pytest.approx(90.0 + 10.0 + 50.0), [0, 1, 2, 3], "finished"),  # own and lent0 are free then: four GPUs
    ]


# Links as a resource.
UPLINK = Cluster(tuple(Node(f"n{k}", gpus=2, rack=f"r{k}") for k in range(2)), (Link("rack:r0", "rack:r1", 1.0),))


def across(performance: Any, look: Callable[[Snapshot], None] = lambda snapshot: None) -> None:
    """Two jobs, each with a GPU in each of two racks."""
    sends = {"iteration_time": 0.2, "stage_network": 0.1, "link_bandwidth": 1.0}

    @dataclass(frozen=True)
    class Across(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            look(snapshot)
            rows = [Assignment(k, devices=(0, 2) if name == "a" else (1, 3)) for k, name in enumerate(snapshot.jobs.ids)]
            return Plan.assign(rows, valid_until=FOREVER)

    simulate([job("a", 2, 100, **sends), job("b", 2, 60, **sends)], UPLINK, Across(), performance=performance)


def test_a_snapshot_shows_which_jobs_cross_a_link_and_how_loaded_it_is() -> None:
    seen: list[Any] = []
    across("shared-links", lambda snapshot: seen.append((snapshot.cluster.links.users, snapshot.cluster.links.load.tolist())))

    assert seen[0] == (((),), [0.0])
    assert (((0,),), [0.5]) in seen  # "b" has gone


def test_a_model_sees_the_neighbours_of_a_gang() -> None:
    met = []

    @dataclass(frozen=True)
    class Watching(PerformanceModel):
        about_everyone = True

        def rates(self, gangs: Any) -> tuple[Any, Any]:
            met.append([[(near.job, near.links) for near in gangs[at].neighbours] for at in range(len(gangs))])
            return gangs.divided, np.full(len(gangs), np.inf)

    across(Watching())

    assert [[("b", (0,))], [("a", (0,))]] in met
