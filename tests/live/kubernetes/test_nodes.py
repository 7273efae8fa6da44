"""What nodes of a cluster are for the scheduler, and which of their devices others use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gantline.core.cluster import Cluster
from gantline.live.runners.kubernetes.cluster_cache import ClusterCache
from gantline.live.runners.kubernetes.pods_and_nodes import Pod, amount, read_node, read_pod, requests_of
from gantline.live.runners.runner_events import NodeState
from gantline.live.scheduler.endings import NodeWatch


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
