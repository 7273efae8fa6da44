"""What the runner of a Ray cluster is made of, as far as it needs no Ray: keepers' folders, nodes by name, gangs of several parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import until

from gantline.core.errors import UsageError
from gantline.live.runners.local.output import Log
from gantline.live.runners.local.ranks import combined
from gantline.live.runners.ray.connection import RayNode, RayNodes, check_devices
from gantline.live.runners.ray.node_agent import NodeAgent, SpreadGang, Tail
from gantline.live.runners.runner_events import NodeState


# --- nodes ----------------------------------------------------------------------------------------------------------------
def listed(id: str, alive: bool = True, labels: dict[str, str] | None = None, **resources: float) -> dict[str, Any]:
    """A line of Ray's list of nodes."""
    return {
        "NodeID": id, "Alive": alive, "NodeName": "10.0.0.1", "NodeManagerAddress": "10.0.0.1", "NodeManagerHostname": "host",
        "NodeManagerPort": 1, "Labels": labels or {}, "Resources": resources or {"CPU": 4.0},
    }  # fmt: skip


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RayNodes:
    monkeypatch.setattr(RayNode, "answers", lambda self: False)
    return RayNodes(tmp_path / "nodes.json", slots=True)


def test_gpus_are_devices_of_the_type_that_ray_declares(nodes: RayNodes) -> None:
    nodes.see([listed("a1", labels={"gantline.io/node": "a"}, CPU=8.0, GPU=4.0, **{"accelerator_type:A100": 1.0})])
    (node,) = nodes.cluster.nodes
    assert (node.name, node.type, node.gpus, node.cpus) == ("a", "a100", 4, 8.0)
    assert nodes.resource("a") == "GPU"


def test_nodes_without_gpus_have_slots_only_where_that_was_asked_for(nodes: RayNodes) -> None:
    nodes.see([listed("a1")])
    assert [(node.type, node.gpus) for node in nodes.cluster.nodes] == [("cpu", 4)]
    nodes.slots, nodes.present = False, {}
    nodes.see([listed("b1")])
    assert not nodes.cluster.nodes


def test_two_nodes_of_one_host_have_two_names_and_keep_them(nodes: RayNodes) -> None:
    nodes.see([listed("a1"), listed("b1")])
    assert set(nodes.present) == {"host", "host-b1"}
    later = RayNodes(nodes.file, slots=True)
    later.see([listed("b1"), listed("a1")])
    assert {name: one.id for name, one in later.present.items()} == {"host": "a1", "host-b1": "b1"}


def test_a_node_that_is_started_again_returns_under_its_name(nodes: RayNodes) -> None:
    named = {"gantline.io/node": "a"}
    nodes.see([listed("a1", labels=named)])
    lost = nodes.see([listed("a1", alive=False, labels=named)])
    assert [(one.name, one.state) for one in lost] == [("a", NodeState.LOST)]
    back = nodes.see([listed("a1", alive=False, labels=named), listed("a2", labels=named)])
    assert [(one.name, one.state) for one in back] == [("a", NodeState.UP)]
    assert nodes.present["a"].id == "a2"


def test_a_node_that_ray_gives_up_is_not_lost_while_it_answers(nodes: RayNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"gantline.io/node": "a"}
    nodes.see([listed("a1", labels=named)])
    monkeypatch.setattr(RayNode, "answers", lambda self: True)
    assert nodes.see([listed("a1", alive=False, labels=named), listed("a2", labels=named)]) == []
    monkeypatch.setattr(RayNode, "answers", lambda self: False)
    told = nodes.see([listed("a1", alive=False, labels=named), listed("a2", labels=named)])
    assert [(one.name, one.state) for one in told] == [("a", NodeState.LOST), ("a", NodeState.UP)]


def test_devices_of_a_cluster_are_not_declared_here() -> None:
    assert check_devices("cpu")
    assert not check_devices(None)
    with pytest.raises(UsageError, match="those that its nodes declare"):
        check_devices("h200:8")


# --- keepers --------------------------------------------------------------------------------------------------------------
@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    ranks = [{"RANK": str(rank)} for rank in range(2)]
    env = {"GANTLINE_CHECKPOINT": str(tmp_path / "saved"), "GANTLINE_JOB_ID": "1"}
    return {"want": "run", "serial": 1, "env": env, "ranks": ranks, "shell": True, "first_rank": 2, "grace": 5.0}


@pytest.fixture
def begun(order: dict[str, Any]) -> Iterator[list[NodeAgent]]:
    made: list[NodeAgent] = []
    yield made
    for hands in made:
        hands.order({**order, "command": [""], "want": "stop", "grace": 0.0, "serial": 1000})
        until(lambda hands=hands: hands.state.get("phase") == "over")  # type: ignore[misc]


def test_an_actor_starts_ranks_and_tells_their_output_and_exit_code(order: dict[str, Any], begun: list[NodeAgent]) -> None:
    begun.append(NodeAgent("x", {**order, "command": ["echo $MASTER_ADDR; exit 3"]}, "127.0.0.1"))
    until(lambda: begun[0].state.get("phase") == "over")
    news = begun[0].news(-1, 0, 0.0)
    assert (news.state["cause"], news.state["exit"]) == ("failed", 3)
    assert sorted(news.output.decode().splitlines())[0] in ("[2] 127.0.0.1", "[3] 127.0.0.1")
    assert begun[0].news(news.version, news.offset, 0.0).output == b""


def test_an_older_order_changes_nothing(order: dict[str, Any], begun: list[NodeAgent]) -> None:
    begun.append(NodeAgent("x", {**order, "command": ["sleep 1000"], "serial": 5}, "127.0.0.1"))
    until(lambda: begun[0].state.get("phase") == "running")
    begun[0].order({**order, "command": ["sleep 1000"], "want": "stop", "serial": 4})
    assert json.loads((begun[0].folder / "order.json").read_text())["want"] == "run"


class LateDevices(NodeAgent):
    """Devices that are there when the test says so."""

    def obtain(self, name: str, devices: Sequence[str], amounts: Mapping[str, float]) -> list[str]:
        until(lambda: all((Path(self._order["there"]) / device).exists() for device in devices))
        return [device[-1] for device in devices]


def test_a_job_learns_of_other_devices_when_they_are_there(order: dict[str, Any], begun: list[NodeAgent], tmp_path: Path) -> None:
    """Until then all else that it is ordered is done at once."""
    held = {"one_by_one": "x", "nodes": ["n1"], "bundles": [{"GPU": 1}], "device_names": ["n1:4"], "there": str(tmp_path)}
    usual = {**order, **held, "ranks": [{}], "command": [f"echo $CUDA_VISIBLE_DEVICES >> {tmp_path}/seen; sleep 1000"]}
    begun.append(hands := LateDevices("x", usual, "127.0.0.1"))
    (tmp_path / "n1:4").touch()
    until(lambda: hands.state.get("phase") == "running")
    assert hands.state["actual"] == ["n1:4"]
    change = {"epoch": 2, "members": [0], "env": {}, "ranks": [{}]}
    news = {"grant": {"epoch": 2, "devices": ["n1:4", "n1:6"]}, "change": change}
    hands.order({**usual, **news, "revision": 1, "suspended": True, "serial": 2})
    until(lambda: hands.state.get("phase") == "suspended")
    assert not (hands.folder / "grant.json").exists()
    (tmp_path / "n1:6").touch()
    until((hands.folder / "grant.json").exists)
    until(lambda: (tmp_path / "seen").read_text() == "4\n4,6\n", "a rank that joins")
    hands.order({**usual, **news, "change": {**change, "refuse": "too late"}, "revision": 1, "suspended": True, "serial": 3})
    until(lambda: hands.state.get("board", {}).get("switch.2", {}).get("refused") == "too late")


def test_a_job_whose_turn_is_over_wakes_and_saves_when_it_is_stopped(order: dict[str, Any], begun: list[NodeAgent], tmp_path: Path) -> None:
    line = f"trap 'touch {tmp_path}/has-saved; exit 15' TERM; touch {tmp_path}/up; while true; do sleep 0.02; done"
    usual = {**order, "ranks": [{}], "command": [line], "grace": 30.0}
    begun.append(hands := NodeAgent("x", usual, "127.0.0.1"))
    until((tmp_path / "up").exists)
    until(lambda: hands.state.get("phase") == "running")
    hands.order({**usual, "suspended": True, "revision": 1, "serial": 2})
    until(lambda: hands.state["phase"] == "suspended")
    hands.order({**usual, "suspended": True, "revision": 1, "want": "stop", "serial": 3})
    until(lambda: hands.state["phase"] == "over")
    assert (tmp_path / "has-saved").exists()
    assert hands.state["exit"] == 15, "it was not killed"


_ACTOR = """
import json, sys, time
from gantline.live.runners.ray.node_agent import NodeAgent
hands = NodeAgent("x", json.loads(sys.argv[1]), "127.0.0.1")
while hands.state.get("phase") != "running":
    time.sleep(0.01)
print(hands.state["ranks"][0]["pid"], flush=True)
time.sleep(1000)
"""


def test_ranks_end_with_their_actor_however_that_ends(order: dict[str, Any], tmp_path: Path) -> None:
    """Also a process that a rank has put into a session of its own."""
    told = json.dumps({**order, "command": [f"setsid sleep 1000 & echo $! > {tmp_path}/child; wait"]})
    actor = subprocess.Popen([sys.executable, "-c", _ACTOR, told], stdout=subprocess.PIPE, text=True)
    rank = int(actor.stdout.readline())
    child = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().strip()))
    os.kill(actor.pid, signal.SIGKILL)
    actor.communicate()
    until(lambda: not os.path.exists(f"/proc/{rank}") and not os.path.exists(f"/proc/{child}"), "the end of all processes")


def test_output_is_read_by_offset_across_the_halves_of_a_log(tmp_path: Path) -> None:
    log, tail, found, offset = Log(str(tmp_path / "log"), 0), Tail(tmp_path), b"", 0
    for number in range(40):
        log.write(b"%04d" % number * 256)
        offset, data = tail.read(offset)
        found += data
    assert found == b"".join(b"%04d" % number * 256 for number in range(40))
    late, kept = Tail(tmp_path).read(0)
    assert late == len(found) > len(kept), "only the newest are kept"
    assert found.endswith(kept)


def test_output_that_was_dropped_is_passed_over_and_nothing_is_read_twice(tmp_path: Path) -> None:
    """Whoever asks late, from an offset that is kept no more, receives all that is kept, and goes on behind it."""
    log, tail, written = Log(str(tmp_path / "log"), 0), Tail(tmp_path), b""
    for number in range(12):
        log.write(piece := b"%04d" % number * 256)
        written += piece
        assert tail.end == len(written)  # it is looked at, and not read
    after, data = tail.read(1024)
    assert after == len(written)
    assert 0 < len(data) < len(written) - 1024
    assert written.endswith(data)
    log.write(b"more")
    assert tail.read(after) == (after + 4, b"more")


def test_a_log_keeps_at_least_half_of_what_it_may_however_often_it_has_turned(tmp_path: Path) -> None:
    log, written = Log(str(tmp_path / "log"), 8192), b""
    for number in range(100):
        log.write(piece := b"%04d" % number * 25)
        written += piece
        assert Tail(tmp_path).read(0)[1][-4096:] == written[-4096:]
    assert len(Tail(tmp_path).read(0)[1]) <= 8192


# --- gangs ----------------------------------------------------------------------------------------------------------------
RUNS, DONE = {"phase": "running", "started": 1.0}, {"phase": "over", "cause": "finished", "exit": 0, "ended": 5.0}
FAILED, ENDED = (
    {"phase": "over", "cause": "failed", "exit": 7, "ended": 3.0},
    {"phase": "over", "cause": "stopped", "exit": -9, "ended": 4.0},
)
LOST = {"phase": "over", "cause": "failed", "exit": None, "fault": "?"}


@pytest.mark.parametrize(
    ("parts", "asked", "phase", "cause", "exit"),
    [
        ([RUNS, {}], False, "starting", None, None), ([RUNS, RUNS], False, "running", None, None),
        ([RUNS, DONE], False, "running", None, None), ([DONE, DONE], False, "over", "finished", 0),
        ([ENDED, FAILED], False, "over", "failed", 7), ([ENDED, ENDED], True, "over", "stopped", -9),
        ([DONE, ENDED], True, "over", "stopped", -9),
        ([DONE, DONE], True, "over", "finished", 0), ([ENDED, LOST], False, "over", "failed", None),
    ],
)  # fmt: skip
def test_a_gang_is_what_its_parts_are(parts: list[dict[str, Any]], asked: bool, phase: str, cause: str | None, exit: int | None) -> None:
    found = combined(parts, asked)
    assert (found["phase"], found.get("cause"), found.get("exit")) == (phase, cause, exit)
    assert ("fault" in found) is (LOST in parts)


class OnOneMachine(SpreadGang):
    """The parts of a gang, all of them here."""

    def far(self, name: str, order: dict[str, Any], bundle: int) -> NodeAgent:
        return NodeAgent(name, order, self.address)


def test_when_one_part_of_a_gang_fails_the_others_are_ended(order: dict[str, Any], begun: list[NodeAgent]) -> None:
    order |= {"parts": [1, 1], "nodes": ["a", "b"], "command": ["[ $RANK = 0 ] || exit 3; sleep 1000"]}
    begun.append(gang := OnOneMachine("x", order, "127.0.0.1"))
    until(lambda: gang.state.get("phase") == "over", "no rank is left")
    assert (gang.state["cause"], gang.state["exit"]) == ("failed", 3)
