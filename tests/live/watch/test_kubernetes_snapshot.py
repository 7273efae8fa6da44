"""What a Kubernetes cluster is as a snapshot: from recordings as kubectl prints them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.typed import typed

from gantline.cli.main import main
from gantline.core.snapshot_json import decode_snapshot
from gantline.live.watch.sources import look, look_at_kubernetes
from gantline.live.watch.watched import ClusterLook

NOW = 1_700_000_000.0


def at(seconds: float) -> str:
    return datetime.fromtimestamp(NOW + seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name: str, gpus: int = 4, ready: str = "True", **spec: Any) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "pool": "main", "kubernetes.io/hostname": name}
    room = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": str(gpus)}
    return {
        "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec,
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": ready}]},
    }  # fmt: skip


def pod(name: str, gpus: int = 1, on: str = "", age: float = 100.0, phase: str = "", owner: str = "", **spec: Any) -> dict[str, Any]:
    head: dict[str, Any] = {"name": name, "namespace": "team", "uid": name, "creationTimestamp": at(-age)}
    head |= {"ownerReferences": [{"controller": True, "kind": "Job", "name": owner}]} if owner else {}
    status: dict[str, Any] = {"phase": phase or ("Running" if on else "Pending")} | ({"startTime": at(-age)} if on else {})
    room = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {"kind": "Pod", "metadata": head, "spec": {"nodeName": on, "containers": [{"resources": room}], **spec}, "status": status}


def ended(name: str, seconds: float) -> dict[str, Any]:
    one = pod(name, on="n1", age=seconds, phase="Succeeded")
    one["status"]["containerStatuses"] = [{"state": {"terminated": {"exitCode": 0, "startedAt": at(-seconds), "finishedAt": at(0)}}}]
    return one


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return tmp_path / "now.json"


def seen(path: Path, *items: dict[str, Any]) -> ClusterLook:
    path.write_text(json.dumps({"kind": "List", "items": list(items)}))
    os.utime(path, (NOW, NOW))
    found = look_at_kubernetes(path)
    decode_snapshot(found.snapshot)  # it is one that questions take
    return found


def test_pods_of_one_owner_are_one_job_and_hold_devices_of_their_nodes(recording: Path) -> None:
    found = seen(
        recording,
        node("n1"),
        node("n2"),
        node("cpu-only", gpus=0),
        pod("a-0", 2, "n1", owner="a"),
        pod("a-1", 2, "n2", owner="a"),
        pod("web", 0, "n1"),
    )
    (job,) = found.snapshot["jobs"]
    assert (job["id"], job["gpus"], job["devices"], job["service"], job["user"]) == ("team/a", 4, [0, 1, 4, 5], 100.0, "team")
    assert [one["name"] for one in found.snapshot["cluster"]["nodes"]] == ["n1", "n2"]


def test_what_waits_is_in_the_schedulers_order(recording: Path) -> None:
    found = seen(recording, node("n1"), pod("young", age=10), pod("old", age=50))
    assert (found.policy, found.settings, found.queue) == ("fifo", {"backfill": "skip"}, ("team/old", "team/young"))
    ranked = seen(recording, node("n1"), pod("young", age=10, priority=1000), pod("old", age=50))
    assert (ranked.policy, ranked.queue) == ("slurm", ("team/young", "team/old"))


def test_closed_and_lost_nodes(recording: Path) -> None:
    found = seen(recording, node("n1", unschedulable=True), node("n2", ready="Unknown"), node("n3"))
    assert (found.snapshot["cordoned"], found.snapshot["down"]) == ([0, 1, 2, 3], ["n2"])


@pytest.mark.parametrize(
    ("waits", "why"),
    [
        (pod("big", 9), "fit no node"),
        (pod("picky", nodeSelector={"kubernetes.io/hostname": "n1"}), "ask for some of the nodes of a type"),
        (pod("odd", nodeSelector={"pool": "other"}), "fit no node"),
    ],
)  # fmt: skip
def test_what_a_snapshot_cannot_hold_is_said(recording: Path, waits: dict[str, Any], why: str) -> None:
    found = seen(recording, node("n1"), node("n2"), waits)
    assert found.snapshot["jobs"] == []
    assert f"1 job left out, which {why}" in found.notes
    assert seen(recording, node("n1"), node("n2"), pod("plain", nodeSelector={"pool": "main"})).snapshot["jobs"]


def test_run_times_are_deadlines_or_what_ended_pods_took(recording: Path) -> None:
    found = seen(recording, node("n1"), pod("known", activeDeadlineSeconds=600), pod("unknown"))
    assert {job["id"]: job["estimate"] for job in found.snapshot["jobs"]}["team/known"] == 600.0
    assert found.snapshot["unestimated"] == ["team/unknown"]
    past = [ended(f"e{number}", 100.0 * (number + 1)) for number in range(5)]
    assert seen(recording, node("n1"), pod("unknown"), *past).snapshot["jobs"][0]["estimate"] == 300.0


def test_questions_are_answered_about_it(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen(recording, node("n1"), pod("runs", 4, "n1", activeDeadlineSeconds=600), pod("waits", 2, activeDeadlineSeconds=60))
    assert typed(f"explain team/waits --watch kubernetes:{recording}") == 0
    assert "waits" in capsys.readouterr().out
    assert typed(f"what-if --watch kubernetes:{recording} --policy srtf -o json") == 0
    assert typed(f"watch kubernetes --from {recording}") == 0
    assert "1 jobs run, 1 wait for 2 GPUs" in capsys.readouterr().out


def test_no_end_is_forecast_of_pods_without_a_limit_nor_a_start_of_those_behind(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen(recording, node("n1"), pod("runs", 4, "n1"), pod("waits", 2, age=50), pod("alone", 1, age=40, activeDeadlineSeconds=3600))
    assert typed(f"forecast --watch kubernetes:{recording}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "team/runs: runs; its end is not known: it has no estimate" in lines
    assert "team/waits: 1 job ahead, 1 of unknown length: its start is not known" in lines
    assert all(line.startswith("note:") or "(P50)" not in line for line in lines)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("no JSON", ["--from", "FILE"], "no list of nodes and pods"), ("{}", ["--from", "FILE"], "no list of nodes and pods"),
        ("{}", ["--from", "absent"], "cannot read it"), ("{}", ["--from", "FILE", "--context", "c"], "one cluster already"),
        ("{}", ["--script", "--out", "x"], "looks at nothing"),
    ],
)  # fmt: skip
def test_mistakes(recording: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: list[str], said: str) -> None:
    recording.write_text(text)
    assert main(["watch", "kubernetes", *(str(recording) if one == "FILE" else one for one in arguments)]) == 2
    assert said in capsys.readouterr().err


def test_the_command_of_a_recording_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("watch kubernetes --script") == 0
    assert capsys.readouterr().out == "kubectl get nodes,pods --all-namespaces -o json\n"
    with pytest.raises(Exception, match="slurm or kubernetes"):
        look("nomad")
