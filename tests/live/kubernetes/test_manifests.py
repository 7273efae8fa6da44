"""The objects that a gang becomes, and the shell that is the first process of a pod."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gantline.engine.executor import Order, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.kubernetes.pods_and_nodes import PodTerms, identity_of, manifests, read_pod
from gantline.live.runners.runner_context import Task

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
