"""Nodes come, go, return and are replaced at any time: their names tell them apart, and a job is not blamed for a node that is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.engine import assigning
from tests.live.pretend import Machines, PretendRunner
from tests.live.specs import becomes, replays, shell, state, submit, until, until_running

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import RefusedError
from gantline.core.inputs import Fault, News, Report, decode_input, encode_input
from gantline.engine.executor import Can
from gantline.live.host import Lease
from gantline.live.runners.kubernetes.lease_and_rights import Leadership
from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.ray.connection import LEASE as RAY_LEASE
from gantline.live.runners.ray.connection import ServiceLease
from gantline.live.runners.runner_events import NodeNews, NodeState
from gantline.live.runners.slurm.messages import LEASE, WholeLines
from gantline.live.runners.slurm.part import PartKeeper
from gantline.live.runners.slurm.step import GangKeeper
from gantline.live.scheduler.endings import NodeWatch, all_nodes
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore
from gantline.traces.files.python_file import GivenCode


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = SqlStore.open(tmp_path / "gantline.sqlite")
    yield opened
    opened.close()


@contextmanager
def serving(
    machines: Machines, store: SqlStore, abilities: frozenset[Can] = frozenset(), every: int = 20, policy: str = "fifo"
) -> Iterator[tuple[Scheduler, PretendRunner]]:
    runner = PretendRunner(machines, abilities)
    scheduler = Scheduler(store, runner, policy, checkpoint_every=every)
    machines.known_lost = lambda: set(scheduler.endings.nodes.absent) if hasattr(scheduler, "endings") else set()
    scheduler.start()
    try:
        yield scheduler, runner
    finally:
        scheduler.stop()


def up(scheduler: Scheduler) -> dict[str, int]:
    """Devices that may be used, by node."""
    found: dict[str, int] = {}
    for device in scheduler.view().devices:
        found[device.node] = found.get(device.node, 0) + device.up
    return {name: count for name, count in found.items() if count}


def nodes_of(machines: Machines, job: str) -> set[str]:
    return {node for node, _ in machines.lives[job].places}


def test_a_node_replaced_by_another_of_its_size_while_no_service_runs_is_not_taken_for_it(store: SqlStore) -> None:
    machines = Machines()
    machines.add("a")
    with serving(machines, store) as (scheduler, _):
        job = submit(scheduler, "true", gpus=2)
        until_running(scheduler, job)
    machines.kill("a")
    machines.add("b")
    with serving(machines, store) as (scheduler, _):
        until(lambda: state(scheduler, job) == "running" and nodes_of(machines, job) == {"b"})
        until(lambda: up(scheduler) == {"b": 2})
        assert scheduler.view().jobs[job].failures == 0
    assert not machines.breaches


def test_the_loss_of_a_node_costs_no_retry_and_the_gang_goes_elsewhere(store: SqlStore) -> None:
    machines = Machines()
    machines.add("a")
    machines.add("b")
    with serving(machines, store) as (scheduler, runner):
        job = submit(scheduler, "true", gpus=2)
        until_running(scheduler, job)
        (lost,) = nodes_of(machines, job)
        runner.lose(lost)
        until(lambda: state(scheduler, job) == "running" and nodes_of(machines, job) == {"a", "b"} - {lost})
        told = scheduler.view().jobs[job]
        assert (told.failures, scheduler.registry[job].lost) == (0, 0)
        runner.end(job, exit=3)
        becomes(scheduler, job, "failed")
    assert not machines.breaches
    kinds = [line.get("kind") or line.get("news") for _, line in store.journal() if line.get("input") in ("node", "report")]
    assert kinds.index("down") < kinds.index("failed"), "the node is told before the gang"
    replays(store)


def test_what_a_runner_drains_gets_nothing_new_until_it_is_up_and_a_cordon_stays_an_operators() -> None:
    cluster = Cluster((Node("a", "gpu", 2),))
    watch = NodeWatch()

    def told(what: NodeState, gpus: int = 2) -> list[str]:
        return [event.kind for event in watch.events([NodeNews("a", what, Node("a", "gpu", gpus))], cluster, 1.0)]

    assert told(NodeState.UP) == [], "it does not undo what an operator has cordoned"
    assert [told(NodeState.DRAINED), told(NodeState.DRAINED), told(NodeState.UP)] == [["drain"], [], ["up"]]
    assert [told(NodeState.DRAINED), told(NodeState.LOST), told(NodeState.LOST), told(NodeState.UP)] == [["drain"], ["down"], [], ["up"]]
    assert [told(NodeState.UP, 4)] == [["down", "join"]]
    cluster = Cluster((Node("a", "gpu", 4),))
    assert [told(NodeState.DRAINED, 8), told(NodeState.LOST, 8)] == [["down", "join", "drain"], ["down"]], (
        "it is replaced by one that is drained"
    )


def test_nothing_starts_on_a_node_that_was_drained_before_the_service_began(store: SqlStore) -> None:
    """One that is known and one that is new, each told with a node that is not drained."""
    machines = Machines()
    machines.add("a")
    with serving(machines, store) as (scheduler, _):
        until(lambda: up(scheduler) == {"a": 2})
    for name in "bc":
        machines.add(name)
    machines.drained = {"a", "b"}
    with serving(machines, store) as (scheduler, runner):
        job = submit(scheduler, "true", gpus=2)
        until_running(scheduler, job)
        assert (nodes_of(machines, job), up(scheduler)) == ({"c"}, {"c": 2})
        runner.drain("b", False)
        until(lambda: up(scheduler) == {"b": 2, "c": 2})
    assert {node for one in machines.sent for node in one.nodes} == {"c"}


def test_a_service_that_was_killed_before_a_checkpoint_knows_which_nodes_are_lost(store: SqlStore) -> None:
    machines = Machines()
    machines.add("a")
    machines.add("b")
    with serving(machines, store, every=10_000) as (scheduler, runner):
        runner.lose("b")
        until(lambda: up(scheduler) == {"a": 2})
    assert [saved["setup"]["absent"] for _, saved in store.checkpoints()] == [[]]
    machines.add("b")
    with serving(machines, store) as (scheduler, _):
        until(lambda: up(scheduler) == {"a": 2, "b": 2})


def test_what_the_runner_cannot_do_is_not_ordered_and_is_in_the_journal(store: SqlStore) -> None:
    """A job that could use other devices while it runs, where nothing can give it any: it is stopped and started."""
    machines = Machines()
    machines.add("a", 4)
    spec = shell("true", gpus=1, min_gpus=1, max_gpus=4, changes=("devices",))
    with serving(machines, store) as (scheduler, _):
        (job,) = scheduler.submit(spec)
        until_running(scheduler, job)
        assert scheduler.ask(lambda: Can.DEVICES in scheduler.loop.inbox.can(scheduler.loop.engine.inputs.rows.of(job) or 0)) is False
        assert scheduler.setup.abilities == ()
    with serving(machines, store, frozenset({Can.DEVICES})) as (scheduler, _):
        assert scheduler.setup.abilities == ("devices",)
        assert scheduler.ask(lambda: scheduler.loop.inbox.can(scheduler.loop.engine.inputs.rows.of(job) or 0)) == {Can.DEVICES}
    assert next(saved["setup"]["abilities"] for _, saved in store.checkpoints()) == []


def test_gangs_that_would_share_are_placed_apart_where_the_runner_puts_one_on_a_device(store: SqlStore) -> None:
    """The policy pairs all four jobs of two devices each; there is room for two, and the reason of the others says why they wait."""
    machines = Machines()
    machines.add("a")
    machines.add("b")
    with serving(machines, store, policy=f"{assigning.__file__}:Pairs") as (scheduler, runner):
        jobs = [submit(scheduler, "true", gpus=2) for _ in range(4)]
        until(lambda: [state(scheduler, job) for job in jobs] == ["running", "running", "pending", "pending"])
        until(lambda: [scheduler.view().jobs[job].reason for job in jobs[2:]] == ["one-gang", "one-gang"])
        assert scheduler.snapshot()["collocates"] is False, "forecasts know it"
        runner.end(jobs[0])
        until(lambda: sum(state(scheduler, job) == "running" for job in jobs) == 2)
        with pytest.raises(RefusedError, match=r"0\.5 of a device, and this executor puts one gang on a device"):
            scheduler.submit(shell("true", share="mps", part=0.5))
    assert not machines.breaches
    replays(store, code=GivenCode((f"{assigning.__file__}:Pairs",)))


def test_whose_fault_it_is_and_which_devices_were_picked_are_in_the_journal() -> None:
    report = Report(News.FAILED, 3, 7, 1.0, lost=Fault.ENGINE, actual=("n1/GPU-8a", "n2/GPU-01"))
    assert decode_input(encode_input(report)) == report


def test_news_of_all_nodes_name_those_that_are_gone_first() -> None:
    a, b = Node("a", "gpu", 2), Node("b", "gpu", 2)
    assert [(one.name, one.state.value) for one in all_nodes(Cluster((b,)), Cluster((a,)), {})] == [("a", "lost"), ("b", "up")]
    assert [(one.name, one.state.value) for one in all_nodes(Cluster((b,)), Cluster((a, b)), {"b": "cordoned"})][1:] == [("b", "drained")]


# Silence beyond a lease is a loss, wherever one is held: these clocks stand still until the test moves them.


class Clock:
    """It shows what it is set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_runs_out_unless_a_sign_of_life_comes_and_can_be_given_up() -> None:
    clock = Clock()
    lease = Lease(30.0, clock)
    for _ in range(3):
        clock.now += 30.0
        assert not lease.is_over
        lease.renew()
    clock.now += 30.1
    assert lease.is_over
    lease.renew()
    assert not lease.is_over
    lease.end()
    assert lease.is_over


# --- Slurm: a gang and its parts ------------------------------------------------------------------------------------------
class OfTwoNodes(GangKeeper):
    """The keeper of a gang whose parts run, without Slurm."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        write_json(str(folder / "order.json"), {"nodes": ["n1", "n2"], "want": "run"})
        super().__init__(str(folder), clock)
        for node in self.nodes:
            self.hear(_word(node=node, step="7.1", port=1))
            self.hears(node)
        self.sent = dict(self.order)

    def hears(self, node: str) -> None:
        self.hear(_word(node=node, state={"phase": "running"}))


def _word(**news: Any) -> bytes:
    return b"gantline! " + json.dumps(news).encode()


def test_a_part_that_is_silent_beyond_its_lease_ends_its_gang_and_is_not_taken_in_again(tmp_path: Path) -> None:
    clock = Clock()
    gang = OfTwoNodes(tmp_path, clock)
    clock.now += LEASE
    gang.hears("n1")
    gang.judge()
    assert (gang.ends_all, gang.state["phase"]) == (False, "running"), "its lease has not run out"
    clock.now += 0.1
    gang.judge()
    assert gang.ends_all
    assert (gang.states["n1"]["phase"], gang.states["n2"]["phase"]) == ("running", "over")
    assert gang.states["n2"]["why"] == "its part on node n2 has been silent for 30 s"
    gang.hears("n2")
    assert gang.states["n2"]["phase"] == "over", "what comes back finds its epoch over"


@pytest.mark.parametrize(("cause", "at_once"), [("stopped", False), ("failed", True)])
def test_a_gang_of_which_one_part_has_ended_early_is_ended_and_saves_where_slurm_stopped_the_part(
    tmp_path: Path, cause: str, at_once: bool
) -> None:
    gang = OfTwoNodes(tmp_path, Clock())
    gang.hear(_word(node="n1", state={"phase": "over", "cause": cause, "exit": 15}))
    assert (gang.ends_all, gang.ends_at_once) == (True, at_once)


def test_a_part_that_hears_nothing_of_its_gang_ends_its_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended = Clock(), []
    write_json(str(tmp_path / "order.json"), {"want": "run", "env": {"GANTLINE_CHECKPOINT": str(tmp_path)}})
    part = PartKeeper(str(tmp_path), "n1", WholeLines(), clock)
    part.order = read_json(str(tmp_path / "order.json")) or {}
    monkeypatch.setattr(part, "kill", lambda: ended.append(clock.now))
    for _ in range(2):
        clock.now += LEASE
        part.count()
        part.receive(b"{}")
    assert not ended
    clock.now += LEASE + 0.1
    part.count()
    assert ended == [clock.now]


# --- one service for a cluster ----------------------------------------------------------------------------------------------
def test_another_home_may_schedule_a_ray_cluster_when_the_lease_of_the_first_has_run_out() -> None:
    clock = Clock()
    lease = ServiceLease(clock)
    assert lease.take("a", "the service of /a") == ""
    assert lease.take("b", "the service of /b") == "the service of /a"
    clock.now += RAY_LEASE
    assert lease.take("a", "the service of /a, started again") == "", "a home may take its own at any time"
    clock.now += RAY_LEASE
    assert lease.take("b", "the service of /b") == "the service of /a, started again"
    clock.now += 0.1
    assert lease.take("b", "the service of /b") == ""
    assert lease.take("a", "the service of /a") == "the service of /b", "what comes back finds its time over"
    lease.leave("b")
    assert lease.take("a", "the service of /a") == ""


class Api:
    """Takes whatever is written."""

    skew = 0.0

    def create(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        return value

    replace = create

    def get(self, path: str) -> None:
        return None


def test_a_service_may_write_to_kubernetes_only_while_its_lease_runs() -> None:
    clock = Clock()
    leadership = Leadership(Api(), "default", "home", lambda error: None, clock)  # type: ignore[arg-type]
    assert not leadership.is_held
    leadership.acquire()
    clock.now += 15.0
    assert leadership.is_held
    clock.now += 0.1
    assert not leadership.is_held
