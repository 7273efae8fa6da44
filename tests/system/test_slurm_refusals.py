"""What cannot be in a Slurm allocation: each with one message that says where, what and how to mend it, and nothing lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.slurm import Allocated, allocated, missing
from tests.typed import typed

from gantline.core.errors import RefusedError, UnreachableError, UsageError
from gantline.live.runners.slurm import commands
from gantline.live.runners.slurm.runner import SlurmRunner

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")


@pytest.fixture(scope="module")
def allocation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Allocated]:
    """Three nodes, of which Slurm gives CPUs only."""
    with allocated(tmp_path_factory.mktemp("slurm"), "--cpus-per-task=2") as found:
        yield found


def test_there_is_no_slurm_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert typed(f"up --home {tmp_path}/home --executor slurm --policy fifo") == 4
    said = capsys.readouterr().err
    assert "scontrol, squeue, scancel, srun: no such command on this machine" in said
    assert "salloc" in said


def test_there_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", os.devnull)
    commands.version.cache_clear()
    with pytest.raises(UnreachableError, match=r"no Slurm cluster: .*Unable to process configuration file.*SLURM_CONF"):
        SlurmRunner(tmp_path, job="1")


def test_slurm_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "version", lambda: (19, 5))
    with pytest.raises(RefusedError, match=r"Slurm 19\.5 is too old.*use Slurm 20\.11 or later"):
        SlurmRunner.check(None, {})


def test_there_is_no_allocation(tmp_path: Path, allocation: Allocated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(RefusedError, match=r"there is no allocation to run jobs in.*salloc"):
        SlurmRunner(tmp_path)
    with pytest.raises(UsageError, match="'me' is no id of a Slurm job"):
        SlurmRunner(tmp_path, job="me")
    with pytest.raises(RefusedError, match=r"allocation 4711 is over \(Slurm does not know it\)"):
        SlurmRunner(tmp_path, job="4711")


def test_the_allocation_waits_or_is_over(tmp_path: Path, allocation: Allocated) -> None:
    held = allocation.cluster.submit(60, 0, "--hold")
    with pytest.raises(RefusedError, match=rf"allocation {held} has not begun \(PENDING\)"):
        SlurmRunner(tmp_path, "cpu", job=held)
    allocation.cluster.run("scancel", held)
    with pytest.raises(RefusedError, match=rf"allocation {held} is over \(CANCELLED\).*kept for the next one"):
        SlurmRunner(tmp_path, "cpu", job=held)


def test_a_remembered_allocation_that_is_over_gives_way_to_the_present_one(
    tmp_path: Path, allocation: Allocated, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", allocation.job)
    runner = SlurmRunner(tmp_path, "cpu", job="4711")
    runner.close()
    assert runner.job == allocation.job


def test_the_allocation_has_no_gpus_and_devices_are_not_declared(tmp_path: Path, allocation: Allocated) -> None:
    with pytest.raises(RefusedError, match=f"no node of allocation {allocation.job} has devices for jobs.*--devices cpu"):
        SlurmRunner(tmp_path, job=allocation.job)
    with pytest.raises(UsageError, match="'tpu:8': the devices of an allocation are those that Slurm gave it"):
        SlurmRunner(tmp_path, "tpu:8", job=allocation.job)


@pytest.mark.skipif(os.getuid() != 0, reason="another's allocation can be made by root only")
def test_the_allocation_is_anothers(tmp_path: Path, allocation: Allocated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4321)
    with pytest.raises(RefusedError, match=f"allocation {allocation.job} belongs to root: only its owner can start steps in it"):
        SlurmRunner(tmp_path, "cpu", job=allocation.job)


def test_two_services_do_not_schedule_one_allocation(tmp_path: Path, allocation: Allocated) -> None:
    first = SlurmRunner(tmp_path / "first", "cpu", job=allocation.job)
    try:
        with pytest.raises(RefusedError, match=rf"another service \(process {os.getpid()} on .*\) schedules allocation {allocation.job}"):
            SlurmRunner(tmp_path / "second", "cpu", job=allocation.job)
        SlurmRunner(tmp_path / "first", "cpu", job=allocation.job).close()  # which was killed, and is started again
    finally:
        first.close()
    SlurmRunner(tmp_path / "second", "cpu", job=allocation.job).close()


def test_slurmctld_is_away_when_a_service_starts(tmp_path: Path, allocation: Allocated) -> None:
    with allocation.cluster.without_controller(), pytest.raises(UnreachableError, match=r"slurmctld does not answer.*jobs that run go on"):
        SlurmRunner(tmp_path, "cpu", job=allocation.job)
