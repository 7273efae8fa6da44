"""What the runner of a Slurm allocation is made of, without Slurm: what is read of an allocation, its nodes, and a part of a gang."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import until

from gantline.core.cluster import Node
from gantline.core.errors import UsageError
from gantline.live.runners.local.files import children_of
from gantline.live.runners.runner_events import NodeState
from gantline.live.runners.slurm import allocation, commands
from gantline.live.runners.slurm.allocation import AllocatedNode, SlurmAllocation, SlurmNodes
from gantline.live.runners.slurm.commands import SlurmAway, SlurmSaysNo
from gantline.live.runners.slurm.messages import WholeLines, news_in
from gantline.live.runners.slurm.runner import PART

JOB = (
    "JobId=7 JobName=x UserId=ann(1000) JobState=RUNNING NodeList=n[1-2],c9 BatchHost=n1 JOB_GRES=gpu:a100:4"
    " Nodes=n[1-2] CPU_IDs=0-7,16 Mem=2048 GRES=gpu:a100:2(IDX:0,3) Nodes=c9 CPU_IDs=0-3 Mem=0 GRES= MinCPUsNode=1"
)
NODES = "\n".join(
    f"NodeName={name} CPUTot=32 NodeAddr=10.0.0.{k} Port=6818 RealMemory=4096 State={state}"
    for k, (name, state) in enumerate((("n1", "MIXED"), ("n2", "ALLOCATED+DRAIN"), ("c9", "MIXED*")))
)


def _slurm_prints(monkeypatch: pytest.MonkeyPatch, job: str, nodes: str = NODES) -> None:
    monkeypatch.setattr(allocation, "ask", lambda *command: nodes if "node" in command else job)


# --- an allocation ------------------------------------------------------------------------------------------------------
def test_nodes_have_what_the_allocation_has_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    _slurm_prints(monkeypatch, JOB)
    found = SlurmAllocation.look("7", slots=False)
    assert {name: one.node for name, one in found.nodes.items()} == {name: Node(name, "a100", 2, 9, 2.0) for name in ("n1", "n2")}
    assert (found.nodes["n2"].address, found.nodes["n2"].state) == ("10.0.0.1", {"ALLOCATED", "DRAIN"})
    slots = SlurmAllocation.look("7", slots=True).nodes["c9"]
    assert (slots.node, slots.state) == (Node("c9", "cpu", 4, 4, 4.0), {"MIXED", "NOT_RESPONDING"})


def test_gpus_of_two_types_on_a_node_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _slurm_prints(monkeypatch, JOB.replace("GRES=gpu:a100:2(IDX:0,3)", "GRES=gpu:a100:1(IDX:0),gpu:v100:1(IDX:3)"))
    with pytest.raises(UsageError, match=r"GPUs of several types on n1: a100, v100.*--gres=gpu:a100:N"):
        SlurmAllocation.look("7", slots=False)


def test_a_job_that_slurm_has_forgotten_is_over_and_one_that_it_cannot_speak_of_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def says(error: SlurmSaysNo) -> None:
        def ask(*command: str) -> str:
            raise error

        monkeypatch.setattr(allocation, "ask", ask)

    says(SlurmSaysNo("Invalid job id specified"))
    assert SlurmAllocation.look("7", slots=False).is_over
    says(SlurmAway("Unable to contact slurm controller"))
    with pytest.raises(SlurmAway):
        SlurmAllocation.look("7", slots=False)


def test_a_controller_that_is_away_is_told_from_one_that_says_no() -> None:
    for said, kind in (("Unable to contact slurm controller (connect failure)", SlurmAway), ("Invalid job id specified", SlurmSaysNo)):
        with pytest.raises(SlurmSaysNo) as found:
            commands.ask("sh", "-c", f"echo 'slurm_load_jobs error: {said}' >&2; exit 1")
        assert type(found.value) is kind


# --- nodes --------------------------------------------------------------------------------------------------------------
def _seen(*names: str, state: str = "MIXED", job: str = "RUNNING") -> SlurmAllocation:
    nodes = {name: AllocatedNode(Node(name, "a100", 2), "127.0.0.1", 1, frozenset(state.split("+"))) for name in names}
    return SlurmAllocation("7", job, nodes)


def test_nodes_go_drain_and_return() -> None:
    nodes = SlurmNodes("7")

    def news(found: SlurmAllocation, *suspects: str) -> list[tuple[str, NodeState]]:
        return [(one.name, one.state) for one in nodes.see(found, suspects)]

    assert news(_seen("a", "b")) == [("a", NodeState.UP), ("b", NodeState.UP)]
    assert news(_seen("a", "b", state="MIXED+NOT_RESPONDING")) == [], "Slurm itself waits for a node that is silent"
    assert news(_seen("a", "b", state="MIXED+DRAIN")) == [("a", NodeState.DRAINED), ("b", NodeState.DRAINED)]
    assert news(_seen("a", "b")) == [("a", NodeState.UP), ("b", NodeState.UP)]
    assert news(_seen("a")) == [("b", NodeState.LOST)]
    assert news(_seen("a", "b", state="DOWN")) == [("a", NodeState.LOST)]
    assert news(_seen("a", "b")) == [("a", NodeState.UP), ("b", NodeState.UP)]
    assert news(_seen(job="TIMEOUT")) == [("a", NodeState.LOST), ("b", NodeState.LOST)]


def test_a_node_on_which_a_gang_fell_silent_is_lost_where_slurmd_does_not_answer() -> None:
    nodes = SlurmNodes("7")
    nodes.see(_seen("a", "b"))
    (lost,) = nodes.see(_seen("a", "b"), suspects=["b"])
    assert (lost.name, lost.state, lost.why) == ("b", NodeState.LOST, "neither its part of a gang nor slurmd answers")
    assert nodes.see(_seen("a", "b", state="MIXED+NOT_RESPONDING")) == []


# --- a part of a gang -----------------------------------------------------------------------------------------------------
class Part:
    """The program of a task on node b, with the streams that srun would hold."""

    def __init__(self, folder: Path, named: dict[str, str]) -> None:
        """`named`: the devices as Slurm names them to the step."""
        self.folder = folder
        pipe = subprocess.PIPE
        env = {**os.environ, "SLURMD_NODENAME": "b", "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "3", **named}
        self.process = subprocess.Popen(PART, stdin=pipe, stdout=pipe, stderr=pipe, env={**env, "TMPDIR": str(folder)}, bufsize=0)
        self.lines, self.news = WholeLines(), list[dict[str, Any]]()

    def order(self, line: str, **more: object) -> None:
        env = {"PATH": os.environ["PATH"], "GANTLINE_CHECKPOINT": str(self.folder), "FOLDER": str(self.folder)}
        order = {
            "want": "run", "job": "1", "epoch": 1, "revision": 0, "command": [line], "shell": True, "cwd": "", "env": env, "grace": 20.0,
            "nodes": ["a", "b"], "parts": [1, 2], "places": [[0], [2, 0]], "meet": {"MASTER_ADDR": "a"},
            "ranks": [{"RANK": str(rank)} for rank in range(3)], **more,
        }  # fmt: skip
        self.process.stdin.write(json.dumps({"order": order}).encode() + b"\n")

    def heard(self) -> list[dict[str, Any]]:
        """All that it has news_in."""
        while select.select([self.process.stderr], [], [], 0)[0] and (data := os.read(self.process.stderr.fileno(), 65536)):
            self.news += [found for line in self.lines.add(data) if (found := news_in(line))]
        return self.news

    def state(self) -> dict[str, Any]:
        return dict(next((one["state"] for one in reversed(self.heard()) if "state" in one), {}))


@pytest.fixture
def part(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Part]:
    found = Part(tmp_path, getattr(request, "param", {"CUDA_VISIBLE_DEVICES": "4,5,6"}))
    yield found
    found.process.kill()
    found.process.wait()
    for stream in (found.process.stdin, found.process.stdout, found.process.stderr):
        stream.close()


WAITS = "trap 'exit 15' TERM; echo at $MASTER_ADDR, $CUDA_VISIBLE_DEVICES; echo $$ > $FOLDER/pid.$RANK; while :; do sleep 0.05; done"


def _ranks(folder: Path) -> list[int]:
    return [int(text) for rank in (1, 2) if (path := folder / f"pid.{rank}").exists() and (text := path.read_text().strip())]


def _is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()


def test_a_part_runs_its_own_ranks_on_its_own_devices_and_stops_them(tmp_path: Path, part: Part) -> None:
    until(part.heard)
    assert {**part.news[0], "port": 0} == {"node": "b", "step": "7.3", "port": 0}
    part.order(WAITS)
    until(lambda: len(_ranks(tmp_path)) == 2 and part.state().get("phase") == "running")
    part.order(WAITS, want="stop")
    until(lambda: part.state().get("phase") == "over")
    assert (part.state()["cause"], part.state()["exit"]) == ("stopped", 15)
    assert {b"[1] at a, 6,4", b"[2] at a, 6,4"} <= set(part.process.stdout.read().splitlines())


SEES = "echo ${CUDA_VISIBLE_DEVICES-all}/${ROCR_VISIBLE_DEVICES-all}/${ZE_AFFINITY_MASK-all}"


@pytest.mark.parametrize(
    ("part", "seen"),
    [
        ({}, b"//"),
        ({"CUDA_VISIBLE_DEVICES": ""}, b"//"),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6"}, b"/6,4/all"),
        ({"CUDA_VISIBLE_DEVICES": "4"}, b"4/all/all"),
    ],
    indirect=["part"],
)
def test_a_part_sees_no_device_that_slurm_does_not_name_to_its_step(part: Part, seen: bytes) -> None:
    """Without a variable programs see every device of the node, those of other jobs too."""
    part.order(SEES)
    until(lambda: part.state().get("phase") == "over")
    assert set(part.process.stdout.read().splitlines()) == {b"[1] " + seen, b"[2] " + seen}


def test_a_part_whose_gang_is_gone_ends_its_ranks(tmp_path: Path, part: Part) -> None:
    part.order(WAITS)
    ranks = until(lambda: len(found := _ranks(tmp_path)) == 2 and found)
    part.process.stdin.close()
    until(lambda: not any(map(_is_there, ranks)))
    assert part.process.wait(60) == 0


def test_a_part_that_never_gets_an_order_starts_nothing(part: Part) -> None:
    part.process.stdin.close()
    assert part.process.wait(60) == 0


def test_ranks_can_save_when_slurm_ends_the_allocation(tmp_path: Path, part: Part) -> None:
    """Slurm sends SIGTERM to all processes of a step; the part does not take what its ranks do then for a failure of the job."""
    part.order(WAITS.replace("exit 15", 'trap "" TERM; touch $FOLDER/saved.$RANK; exit 15'))
    ranks = until(lambda: len(found := _ranks(tmp_path)) == 2 and found)
    until(lambda: part.state().get("phase") == "running")
    for pid in (part.process.pid, *children_of(part.process.pid), *ranks):
        os.kill(pid, signal.SIGTERM)
    until(lambda: part.state().get("phase") == "over")
    assert part.state()["cause"] == "stopped"
    assert all((tmp_path / f"saved.{rank}").exists() for rank in (1, 2))
