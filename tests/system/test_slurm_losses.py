"""Nodes, keepers, the controller and the allocation itself are lost beneath jobs: these go on, or start again, and none runs twice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.live.specs import becomes, ended, state, submit, until
from tests.system.cluster_lives import Lives
from tests.system.slurm import Allocated, allocated, missing

from gantline.core.inputs import Action
from gantline.live.runners.local.files import read_json
from gantline.live.runners.slurm.runner import SlurmRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore
from gantline.live.store.records import MemoryStore, Store

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")


@pytest.fixture(scope="module")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allocated]:
    with allocated(tmp_path_factory.mktemp("slurm"), "--gres=gpu:a100:2", "--cpus-per-task=4") as found:
        yield found


@contextmanager
def scheduling(home: Path, job: str, store: Store | None = None) -> Iterator[Scheduler]:
    """A scheduler of which no job outlives the test."""
    scheduler = Scheduler(store or MemoryStore(), SlurmRunner(home, job=job), "fifo")
    scheduler.start()
    try:
        yield scheduler
        for one in scheduler.view().jobs.values():
            if one.state in ("running", "pending"):
                scheduler.request([one.id], Action.CANCEL)
        ended(scheduler, *scheduler.view().jobs)
    finally:
        scheduler.stop()


def until_finish(folder: Path) -> str:
    """A rank that notes its start, and goes on until it is told to finish."""
    return f"echo $GANTLINE_EPOCH >> {folder}/began.$GANTLINE_JOB_ID; while [ ! -e {folder}/finish ]; do sleep 0.1; done"


def began(folder: Path, job: str) -> int:
    path = folder / f"began.{job}"
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_gangs_see_the_devices_that_were_chosen_for_them(tmp_path: Path, allocation: Allocated) -> None:
    """As Slurm names them to a step; two gangs on one node see different ones."""
    note = f"echo $CUDA_VISIBLE_DEVICES $GANTLINE_DEVICES > {tmp_path}/seen.$GANTLINE_JOB_ID; {until_finish(tmp_path)}"
    with scheduling(tmp_path / "home", allocation.job) as scheduler:
        jobs = [submit(scheduler, note, 1) for _ in range(6)]
        until(lambda: all(began(tmp_path, job) for job in jobs))
        (tmp_path / "finish").touch()
        ended(scheduler, *jobs)
    told = [(tmp_path / f"seen.{job}").read_text().split() for job in jobs]
    assert all(cuda == device.rpartition(":")[2] for cuda, device in told), told
    assert {device.rpartition(":")[0] for _, device in told} == {"node0", "node1", "node2"}


def test_a_keeper_that_is_killed_leaves_nothing_and_its_gang_is_tried_again(tmp_path: Path, allocation: Allocated) -> None:
    with scheduling(tmp_path / "home", allocation.job) as scheduler:
        job = submit(scheduler, until_finish(tmp_path), 2, processes=0)
        until(lambda: began(tmp_path, job) == 2)
        (folder,) = (tmp_path / "home" / "jobs" / job).glob("[0-9]*")
        os.kill(int(read_json(str(folder / "state.json"))["pid"]), signal.SIGKILL)
        until(lambda: began(tmp_path, job) == 4)
        (tmp_path / "finish").touch()
        ended(scheduler, job)
        assert state(scheduler, job) == "succeeded"


@pytest.mark.parametrize("away", [5.0, pytest.param(60.0, marks=pytest.mark.long)])  # seconds
def test_while_slurmctld_is_away_jobs_go_on_and_then_what_waited_starts(tmp_path: Path, allocation: Allocated, away: float) -> None:
    with scheduling(tmp_path / "home", allocation.job) as scheduler:
        first = submit(scheduler, until_finish(tmp_path), 2)
        until(lambda: began(tmp_path, first) == 1)
        with allocation.cluster.without_controller():
            second = submit(scheduler, until_finish(tmp_path), 2)
            time.sleep(away)
            assert (state(scheduler, first), began(tmp_path, second)) == ("running", 0)
        back = time.monotonic()
        until(lambda: began(tmp_path, second) == 1)
        print(f"slurmctld was away for {away:g} s; what waited started {time.monotonic() - back:.1f} s after its return")
        (tmp_path / "finish").touch()
        ended(scheduler, first, second)
        assert (began(tmp_path, first), began(tmp_path, second)) == (1, 1)


def test_a_node_that_is_drained_takes_no_gangs_until_it_is_resumed(tmp_path: Path, allocation: Allocated) -> None:
    with scheduling(tmp_path / "home", allocation.job) as scheduler:
        allocation.cluster.run("scontrol", "update", "NodeName=node0", "State=DRAIN", "Reason=test")
        until(lambda: not any(device.up for device in scheduler.view().devices if device.node == "node0"))
        small = [submit(scheduler, until_finish(tmp_path), 1) for _ in range(4)]
        until(lambda: all(began(tmp_path, job) for job in small))
        late = submit(scheduler, until_finish(tmp_path), 1)
        allocation.cluster.run("scontrol", "update", "NodeName=node0", "State=RESUME")
        until(lambda: began(tmp_path, late))
        where = [device.partition(":")[0] for job in (*small, late) for device in scheduler.view().jobs[job].devices]
        assert sorted(where) == ["node0", "node1", "node1", "node2", "node2"]
        (tmp_path / "finish").touch()
        ended(scheduler, *small, late)


def test_a_node_that_was_drained_before_the_service_began_takes_no_gangs(tmp_path: Path, allocation: Allocated) -> None:
    allocation.cluster.run("scontrol", "update", "NodeName=node1", "State=DRAIN", "Reason=test")
    try:
        with scheduling(tmp_path / "home", allocation.job) as scheduler:
            jobs = [submit(scheduler, until_finish(tmp_path), 1) for _ in range(4)]
            until(lambda: all(began(tmp_path, job) for job in jobs))
            where = {device.partition(":")[0] for job in jobs for device in scheduler.view().jobs[job].devices}
            assert where == {"node0", "node2"}
            (tmp_path / "finish").touch()
            ended(scheduler, *jobs)
    finally:
        allocation.cluster.run("scontrol", "update", "NodeName=node1", "State=RESUME")


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allocated]:
    """A cluster that gives what it cancels a minute."""
    with allocated(tmp_path_factory.mktemp("patient"), "--gres=gpu:a100:2", "--cpus-per-task=4", KillWait="60") as found:
        yield found


@pytest.mark.parametrize("gpus", [2, 4], ids=["one node", "two nodes"])
def test_jobs_save_when_their_allocation_ends_and_go_on_in_the_next(tmp_path: Path, patient: Allocated, gpus: int) -> None:
    """The last rank takes twelve seconds to save, more than the job's own grace; one before it saves at once. No retry is counted."""
    cluster = patient.cluster
    for job in cluster.run("squeue", "-h", "-o", "%i").split():
        cluster.run("scancel", job)
    first = cluster.allocate("--gres=gpu:a100:2")
    store = SqlStore.open(tmp_path / "store.db")
    ranks = gpus // 2
    seconds = f"$((RANK + 1 == {ranks} ? 12 : 0))"
    save = f"trap 'sleep {seconds} && touch {tmp_path}/saved.$RANK; exit 15' TERM; {until_finish(tmp_path)}"
    scheduler = Scheduler(store, SlurmRunner(tmp_path / "home", job=first), "fifo")
    scheduler.start()
    job = submit(scheduler, save, gpus, processes=ranks)
    until(lambda: began(tmp_path, job) == ranks)
    cluster.run("scancel", first)
    becomes(scheduler, job, "pending")
    assert sorted(path.name for path in tmp_path.glob("saved.*")) == [f"saved.{rank}" for rank in range(ranks)]
    scheduler.stop()
    second = cluster.allocate("--gres=gpu:a100:2")
    with scheduling(tmp_path / "home", second, store) as scheduler:
        until(lambda: began(tmp_path, job) == 2 * ranks)
        (tmp_path / "finish").touch()
        ended(scheduler, job)
        assert state(scheduler, job) == "succeeded"


# A service in a Slurm allocation is killed at random instants: no job is lost, none runs twice, and the record can be replayed.


@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("jobs", "kills"), [(8, 3), pytest.param(30, 30, marks=pytest.mark.long)])
def test_jobs_outlive_services_that_are_killed(tmp_path: Path, jobs: int, kills: int) -> None:
    with allocated(tmp_path / "slurm", "--cpus-per-task=2") as allocation:
        env = {name: allocation.cluster.env[name] for name in ("SLURM_CONF", "PATH")}
        lives = Lives(tmp_path, "slurm", {"slurm-job": allocation.job}, seed=23, env=env)
        lives.run(jobs, kills)
        lives.check()
    taken = sorted(lives.adopted)
    print(f"{kills} kills, {len(lives.known)} jobs; adopted after {taken[len(taken) // 2]:.1f} s, at most {taken[-1]:.1f} s")
