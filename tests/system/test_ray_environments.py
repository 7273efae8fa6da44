"""Runtime environments on a Ray cluster: code and variables that are brought to the nodes, and what becomes of those that cannot be."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import ended, must_succeed, until
from tests.system.cluster_lives import Lives
from tests.system.ray_cluster import RayCluster

from gantline.core.errors import RefusedError
from gantline.live.jobs.launch import Launch
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.ray.packages import Packages
from gantline.live.runners.ray.runner import RayRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.service.client import Client
from gantline.live.store.records import MemoryStore

# what it is told by its environment goes into a file of its own; `wanted` lies beside it, and nowhere else
SCRIPT = """
import os, pathlib, sys, time, wanted
board = pathlib.Path(os.environ["BOARD"])
name = "{GANTLINE_JOB_ID}.{GANTLINE_EPOCH}.{RANK}".format(**os.environ)
(board / (name + ".part")).write_text(" ".join([os.environ["NODE_RANK"], os.environ["MODE"], wanted.WORD, os.getcwd()]))
(board / (name + ".part")).rename(board / name)
while sys.argv[1:] and not (board / sys.argv[1]).exists():
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2)
    yield cluster
    cluster.stop()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with the code of a job."""
    folder = tmp_path / "code"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    (folder / "wanted.py").write_text("WORD = 'found'")
    (folder / "data" / "large").write_text("x" * 1000)
    return folder


@pytest.fixture
def board(tmp_path: Path) -> Path:
    (tmp_path / "board").mkdir()
    return tmp_path / "board"


@pytest.fixture
def scheduler(tmp_path: Path, ray_cluster: RayCluster) -> Iterator[Scheduler]:
    made = Scheduler(MemoryStore(), RayRunner(tmp_path / "home", "cpu", address=ray_cluster.address), "fifo")
    made.start()
    yield made
    made.stop()


def job(board: Path, code: Path, *words: str, gpus: int = 1, **environment: Any) -> JobSpec:
    made = {"working_dir": str(code), "env_vars": {"MODE": "fast", "BOARD": str(board)}, **environment}
    return spec_of({"run": [sys.executable, "train.py", *words], "resources": {"gpus": gpus}, "processes": "gpus", "runtime_env": made})


def told(board: Path, pattern: str) -> list[list[str]]:
    """What ranks found: number of the node, variable, imported word, folder."""
    return [path.read_text().split() for path in sorted(board.glob(pattern)) if path.suffix != ".part"]


def test_code_and_variables_are_brought_to_both_nodes(scheduler: Scheduler, board: Path, code: Path) -> None:
    (id,) = scheduler.submit(job(board, code, gpus=4))
    must_succeed(scheduler, id)
    found = told(board, f"{id}.*")
    assert sorted(one[:3] for one in found) == [["0", "fast", "found"]] * 2 + [["1", "fast", "found"]] * 2
    assert all(Path(one[3]) != code and Path(one[3]).name.startswith("_ray_pkg_") for one in found)


def test_a_zip_file_and_what_is_left_out_of_a_folder(scheduler: Scheduler, board: Path, code: Path) -> None:
    archive = Path(shutil.make_archive(str(board / "code"), "zip", code))
    leaves_out = job(board, code, excludes=["data"])
    (first,), (second,) = scheduler.submit(leaves_out), scheduler.submit(job(board, archive))
    must_succeed(scheduler, first, second)
    ((*_, without),), ((*_, whole),) = told(board, f"{first}.*"), told(board, f"{second}.*")
    assert not (Path(without) / "data").exists()
    assert (Path(whole) / "data" / "large").exists()


def test_a_job_that_starts_again_elsewhere_has_the_code_as_it_was_submitted(
    scheduler: Scheduler, board: Path, code: Path, ray_cluster: RayCluster
) -> None:
    (id,) = scheduler.submit(job(board, code, "go"))
    until(lambda: told(board, f"{id}.*"), "the first incarnation")
    (device,) = scheduler.view().jobs[id].devices
    shutil.rmtree(code)
    lost = device.partition(":")[0]
    ray_cluster.lose(lost)
    try:
        until(lambda: len(told(board, f"{id}.*")) == 2, "a second incarnation")
        assert {tuple(one[1:3]) for one in told(board, f"{id}.*")} == {("fast", "found")}
        assert not scheduler.view().jobs[id].devices[0].startswith(f"{lost}:")
        (board / "go").touch()
        must_succeed(scheduler, id)
    finally:
        ray_cluster.add(lost)


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"conda": "no-such-environment"}, "onda"),
        ({"working_dir": "gcs://_ray_pkg_0123456789abcdef.zip"}, "_ray_pkg_0123456789abcdef.zip"),
    ],
)
def test_an_environment_that_cannot_be_made_fails_the_job_with_the_reason(
    scheduler: Scheduler, board: Path, code: Path, environment: dict[str, Any], why: str
) -> None:
    (id,) = scheduler.submit(job(board, code, gpus=3, **environment))
    assert ended(scheduler, id) == ["failed"]
    found = scheduler.view().jobs[id]
    assert "its runtime environment cannot be made: " in found.why
    assert why in found.why
    assert found.restarts == 0
    (after,) = scheduler.submit(job(board, code, gpus=4))
    assert ended(scheduler, after) == ["succeeded"], "its devices were not given back"


def test_what_is_not_there_is_refused_at_submission(scheduler: Scheduler, board: Path, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submit: list[Callable[[JobSpec], object]] = [scheduler.submit, scheduler.check]
    for send in submit:
        with pytest.raises(RefusedError, match=r"no folder or zip file .*/nowhere"):
            send(job(board, code.parent / "nowhere"))
        with pytest.raises(RefusedError, match="requirements"):
            send(job(board, code, pip="/nowhere/requirements.txt"))
    monkeypatch.setattr("ray._private.runtime_env.packaging.GCS_STORAGE_MAX_SIZE", 100)
    with pytest.raises(RefusedError, match=r"packed has 0 MiB, and Ray takes less than 0 MiB.*excludes"):
        scheduler.submit(job(board, code, excludes=["data"]))
    assert not scheduler.view().jobs


def test_code_survives_a_service_that_is_killed(tmp_path: Path, board: Path, code: Path, ray_cluster: RayCluster) -> None:
    lives = Lives(tmp_path, "ray", {"ray-address": ray_cluster.address}, seed=1)
    lives.start("fifo")
    try:
        runs, waits = (lives.client.submit(job(board, code, "go", gpus=gpus))[0] for gpus in (1, 4))
        until(lambda: told(board, f"{runs}.*"), "its start")
        shutil.rmtree(code)
        lives.kill()
        lives.start()
        (board / "go").touch()
        until(lambda: all(_state(lives.client, id) == "succeeded" for id in (runs, waits)), "the end of both jobs")
        assert len(told(board, f"{runs}.*")) == 1, "it was started again"
        assert len(told(board, f"{waits}.*")) == 4
        lives.client.shutdown(drain=True)
        lives.service.join()
    finally:
        lives.kill()


def _state(client: Client, id: str) -> str:
    return str(client.job(id)["state"])


def test_packages_that_no_job_needs_are_removed(tmp_path: Path, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = Packages(tmp_path / "home" / "ray" / "packages")
    first = packages.pack({"working_dir": str(code)})
    (code / "train.py").write_text("other")
    second = packages.pack({"working_dir": str(code)})
    assert len(list(packages.folder.iterdir())) == 2
    monkeypatch.setattr("gantline.live.runners.ray.packages._KEPT", -1.0)
    packages.tidy_up(lambda: [Launch(("true",)), Launch(("true",), runtime_env=second)])
    assert [file.name for file in packages.folder.iterdir()] == [str(second["working_dir"]).removeprefix("gcs://")]
    assert first["working_dir"] != second["working_dir"]
