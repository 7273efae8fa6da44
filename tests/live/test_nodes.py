"""Nodes come, go, return and are replaced at any time: their names tell them apart, and a job is not blamed for a node that is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.engine import assigning
from tests.live.pretend import Machines, PretendRunner
from tests.live.specs import replays, shell, state, submit, until, until_running

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import RefusedError
from gantline.core.inputs import Fault, News, Report, decode_input, encode_input
from gantline.engine.executor import Can
from gantline.live.runners.runner_events import NodeNews, NodeState
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
        until(lambda: state(scheduler, job) == "failed")
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
