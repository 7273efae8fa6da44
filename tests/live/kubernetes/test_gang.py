"""What a killed service leaves in the folders of its gangs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gantline.core.cluster import Cluster
from gantline.engine.executor import News, Order, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.kubernetes.access import ClusterAccess
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.kubernetes.cluster_cache import ClusterCache
from gantline.live.runners.kubernetes.gang_lifecycle import GangEnd, PodGang
from gantline.live.runners.kubernetes.pods_and_nodes import Pod, PodTerms, amount, identity_of, manifests, read_node, read_pod, requests_of
from gantline.live.runners.kubernetes.runner import KubernetesRunner
from gantline.live.runners.runner_context import Task
from gantline.live.runners.runner_events import NodeState
from gantline.live.scheduler.endings import NodeWatch


def test_a_folder_without_an_order_is_no_gang(tmp_path: Path) -> None:
    """The service was killed between the two: the order is repeated, and begins as if nothing had been."""
    (tmp_path / "jobs" / "1" / "1").mkdir(parents=True)
    ran = PodGang("2", 1, tmp_path / "jobs" / "2" / "1", places={"n1": [0, 1]})
    ran.write_order()
    ended = PodGang("3", 4, tmp_path / "jobs" / "3" / "4", verdict=GangEnd(News.FAILED, 7, "why"))
    ended.write_end()
    runner = KubernetesRunner(tmp_path, ApiClient(ClusterAccess("http://127.0.0.1:9")), PodTerms("jobs", "home", ""), True, 300.0)
    assert [(one.job, one.epoch, one.devices, one.is_over) for one in runner.adopt()] == [
        ("2", 1, ("n1:0", "n1:1"), False), ("3", 4, (), True),
    ]  # fmt: skip


def ended(name: str, code: int) -> Pod:
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": code}}}]}
    return read_pod({"metadata": {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n1"}, "status": status})


@pytest.mark.parametrize(
    ("stop_code", "codes", "news", "forced"),
    [
        (0, (0, 0), News.STOPPED, False),  # a job whose ranks save and leave with 0 when they are told to stop has not finished
        (15, (15, 15), News.STOPPED, False),
        (15, (0, 0), News.FINISHED, False),  # it had done all before it could stop
        (None, (0, 0), News.FINISHED, False),
        (0, (0, 137), News.STOPPED, True),
        (0, (0, 7), News.STOPPED, True),
    ],
)
def test_a_preempted_gang_has_finished_only_where_its_codes_cannot_mean_that_it_stopped(
    tmp_path: Path, stop_code: int | None, codes: tuple[int, ...], news: News, forced: bool
) -> None:
    gang = PodGang("1", 1, tmp_path, places={"n1": [0], "n2": [0]}, is_stopping=True, is_running=True, stopped_exit=stop_code)
    end = gang.ended({name: ended(name, code) for name, code in zip(gang.names, codes)})
    assert (end.news, end.forced) == (news, forced)
    gang.verdict = end
    gang.write_end()
    read = PodGang.read("1", 1, tmp_path).verdict
    assert read.news is news, "and a service that adopts it tells the same"


# The objects that a gang becomes, and the shell that is the first process of a pod.

TERMS = PodTerms("jobs", "home1", "http://service:1", "python:3.12", "work")


def pods(launch: Launch, places: dict[str, list[int]], job: str = "7", resource: str = "nvidia.com/gpu") -> list[dict]:
    devices = tuple(range(sum(map(len, places.values()))))
    return manifests(TERMS, Order(Verb.START, 0, 3, devices), Task(job, launch), places, resource)


def env_of(pod: dict) -> dict[str, str]:
    return {one["name"]: one["value"] for one in pod["spec"]["containers"][0]["env"]}


def test_a_gang_over_two_nodes_is_a_pod_for_each_and_ranks_are_counted_through() -> None:
    first, second = pods(Launch(("train",), processes=0), {"n1": [0, 1], "n2": [4]})
    assert [identity_of(pod["metadata"]["name"]) for pod in (first, second)] == [("7", 3), ("7", 3)]
    assert first["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2"}
    assert {key: env_of(second)[key] for key in ("NNODES", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GANTLINE_FIRST_RANK")} == {
        "NNODES": "2", "NODE_RANK": "1", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "1", "GANTLINE_FIRST_RANK": "2",
    }  # fmt: skip
    assert env_of(first)["MASTER_ADDR"] == env_of(second)["MASTER_ADDR"] == "rank-0.gantline-7-3.jobs.svc"
    assert first["spec"]["hostname"] == "rank-0"
    assert env_of(second)["GANTLINE_DEVICES"] == "n1:0,n1:1,n2:4"


def test_what_a_pod_says_of_itself_is_what_it_was_made_as() -> None:
    (made,) = pods(Launch(("train",), memory=2.0), {"n1": [2, 3]}, job="12_4", resource="cpu")
    read = read_pod(made | {"metadata": {**made["metadata"], "uid": "u", "resourceVersion": "9"}})
    assert (identity_of(read.name), read.places, read.home, read.is_held, read.is_gantlines) == (("12_4", 3), (2, 3), "home1", True, True)
    assert read.uses == {"cpu": 2.0, "memory": 2.0 * 2**30}


def test_volumes_are_claims_or_paths_and_saved_work_has_a_folder_for_each_job() -> None:
    (made,) = pods(Launch(("train",), mounts=("data:/data:ro", "/scratch:/scratch")), {"n1": [0]})
    mounts = {one["mountPath"]: one for one in made["spec"]["containers"][0]["volumeMounts"]}
    kinds = {one["name"]: next(kind for kind in one if kind != "name") for one in made["spec"]["volumes"]}
    assert (kinds[mounts["/data"]["name"]], mounts["/data"]["readOnly"]) == ("persistentVolumeClaim", True)
    assert kinds[mounts["/scratch"]["name"]] == "hostPath"
    assert mounts["/gantline/7"]["subPath"] == "7"
    assert env_of(made)["GANTLINE_CHECKPOINT"] == "/gantline/7"


class Container:
    """The first process of a pod, run here."""

    def __init__(self, folder: Path, line: str, ranks: int = 1, **more: str) -> None:
        launch = Launch((line,), shell=True, processes=0, **more)  # type: ignore[arg-type]
        (pod,) = pods(launch, {"n1": list(range(ranks))})
        command = pod["spec"]["containers"][0]["command"]
        self.folder = folder
        self.process = subprocess.Popen(command, env={"PATH": os.environ["PATH"], **env_of(pod)}, cwd=folder, start_new_session=True)

    def until(self, name: str) -> None:
        end = time.monotonic() + 60
        while not (self.folder / name).exists():
            assert time.monotonic() < end
            time.sleep(0.01)

    def ended(self) -> int:
        code = self.process.wait(60)
        end = time.monotonic() + 60
        with contextlib.suppress(ProcessLookupError):  # raised when nothing is left of it
            while True:
                os.killpg(self.process.pid, 0)
                assert time.monotonic() < end
                time.sleep(0.01)
        return code


def test_the_exit_code_of_a_rank_is_that_of_the_pod(tmp_path: Path) -> None:
    assert Container(tmp_path, "exit 7").ended() == 7
    assert Container(tmp_path, "true").ended() == 0


def test_when_one_rank_fails_the_others_end_and_its_code_counts(tmp_path: Path) -> None:
    one = Container(tmp_path, "touch at.$RANK; [ $RANK = 1 ] || exec sleep 1000; while [ ! -e at.2 ]; do sleep 0.01; done; exit 9", ranks=3)
    assert one.ended() == 9


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_stop_signal_reaches_every_rank_as_the_job_wants_it(tmp_path: Path, ranks: int) -> None:
    line = "trap 'touch saved.$RANK; exit 3' USR2; touch up.$RANK; while :; do sleep 0.01; done"
    one = Container(tmp_path, line, ranks, stop_signal="USR2")
    for rank in range(ranks):
        one.until(f"up.{rank}")
    one.process.send_signal(signal.SIGTERM)
    assert one.ended() == 3
    assert all((tmp_path / f"saved.{rank}").exists() for rank in range(ranks))


def test_a_program_without_a_handler_is_ended_by_the_stop_signal(tmp_path: Path) -> None:
    one = Container(tmp_path, "touch up; exec sleep 1000")
    one.until("up")
    one.process.send_signal(signal.SIGTERM)
    assert one.ended() == 128 + signal.SIGTERM


# What nodes of a cluster are for the scheduler, and which of their devices others use.


def node(ready: str = "True", gpus: int = 4, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    room = {"cpu": "7900m", "memory": "16Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "metadata": {"name": "n1", "uid": "u1", "labels": labels or {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}, "spec": spec,
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": ready}]},
    }  # fmt: skip


def pod(name: str, gpus: int = 1, phase: str = "Running", scheduler: str = "another", places: str = "") -> Pod:
    room = {"limits": {"nvidia.com/gpu": str(gpus)}}
    head = {"name": name, "namespace": "jobs", "uid": name, "resourceVersion": "1", "annotations": {"gantline.io/places": places}}
    spec = {"nodeName": "n1", "schedulerName": scheduler, "containers": [{"resources": room}]}
    return read_pod({"metadata": head, "spec": spec, "status": {"phase": phase}})


def test_devices_and_their_type_come_from_status_and_labels() -> None:
    found = read_node(node(), slots=False).node
    assert (found.name, found.type, found.gpus, found.memory) == ("n1", "a100", 4, 16.0)
    slots = read_node(node(), slots=True)
    assert (slots.node.type, slots.node.gpus, slots.resource) == ("cpu", 7, "cpu")
    assert read_node(node(labels={"other": "label"}), slots=False).node.type == "gpu"


@pytest.mark.parametrize(
    ("shown", "state", "why"),
    [
        (node(), NodeState.UP, ""), (node("Unknown"), NodeState.LOST, "silent"), (node("False"), NodeState.DRAINED, "not ready"),
        (node(unschedulable=True), NodeState.DRAINED, "cordoned"),
        (node(taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]), NodeState.DRAINED, "team=a:NoSchedule"),
        (node(taints=[{"key": "team", "value": "a", "effect": "NoExecute"}]), NodeState.DRAINED, "team=a:NoExecute"),
        (node(taints=[{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoExecute"}]), NodeState.DRAINED, "taint b="),
        (node(taints=[{"key": "team", "effect": "PreferNoSchedule"}]), NodeState.UP, ""),
        (node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]), NodeState.UP, ""),
    ],
)  # fmt: skip
def test_taints_cordons_and_silence(shown: dict[str, Any], state: NodeState, why: str) -> None:
    found = read_node(shown, slots=False)
    assert found.state is state
    assert why in found.why


def test_devices_of_others_are_closed_and_opened_again_and_never_those_of_our_gangs() -> None:
    cache = ClusterCache("jobs")
    cache.see_node(read_node(node(), slots=False))
    cache.see_pod(pod("gantline-1.1.0", scheduler="gantline", places="3"))
    cache.see_pod(pod("theirs", gpus=2))
    assert [(one.name, one.state) for one in cache.taken("n1")] == [("n1:1", NodeState.DRAINED), ("n1:2", NodeState.DRAINED)]
    assert cache.taken("n1") == []
    cache.see_pod(pod("theirs", gpus=2, phase="Succeeded"))
    assert [(one.name, one.state) for one in cache.taken("n1")] == [("n1:1", NodeState.UP), ("n1:2", NodeState.UP)]


def test_a_pod_takes_what_it_requests_and_what_it_is_limited_to_where_it_requests_nothing() -> None:
    room = {"requests": {"cpu": "500m"}, "limits": {"cpu": "4", "nvidia.com/gpu": "1"}}
    assert requests_of({"containers": [{"resources": room}]}) == {"cpu": 0.5, "nvidia.com/gpu": 1.0}


def test_one_device_of_a_node_can_be_drained_and_returned_by_the_runner() -> None:
    cache, watch, cluster = ClusterCache("jobs"), NodeWatch(), Cluster((read_node(node(), slots=False).node,))
    cache.see_node(read_node(node(), slots=False))
    cache.see_pod(pod("theirs"))
    assert [(one.name, one.kind) for one in watch.events(cache.taken("n1"), cluster, 1.0)] == [("n1:3", "drain")]
    cache.see_pod(pod("theirs"), is_gone=True)
    assert [(one.name, one.kind) for one in watch.events(cache.taken("n1"), cluster, 2.0)] == [("n1:3", "up")]


def test_an_older_answer_does_not_undo_a_newer_one() -> None:
    cache, seen = ClusterCache("jobs"), pod("gantline-1.1.0", scheduler="gantline")
    assert cache.see_pod(replace(seen, version=5))
    assert not cache.see_pod(replace(seen, version=4))
    assert cache.see_pod(replace(seen, version=6), is_gone=True)
    assert not cache.see_pod(replace(seen, version=6))


@pytest.mark.parametrize(("text", "value"), [("500m", 0.5), ("4", 4.0), ("16Gi", 16 * 2.0**30), ("1k", 1000.0), (None, 0.0), ("odd", 0.0)])
def test_quantities(text: str | None, value: float) -> None:
    assert amount(text) == value
