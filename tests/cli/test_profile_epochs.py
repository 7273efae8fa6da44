"""`gantline profile epochs`: epochs timed with fewer and fewer CPUs, and the table that Synergy's profiles are read from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gantline.cli.main import main
from gantline.systems.synergy.traces import read_profiles
from gantline.traces.files.profiles import write_epochs

EPOCH = "import os, sys; sys.exit(len(os.sched_getaffinity(0)) != int(sys.argv[1]))"


def run(folder: Path, *more: str, cpus: int = 1) -> int:
    head = ["profile", "epochs", "vision", "--data", "100", "--bandwidth", "5000", "--steps", "10", "--to", str(folder)]
    return main([*head, "--cpus", str(cpus), *more])


def test_the_program_has_as_many_cpus_as_it_is_told_and_its_epochs_can_be_read(tmp_path: Path) -> None:
    assert run(tmp_path, "--", sys.executable, "-c", EPOCH, "{cpus}") == 0

    lines = (tmp_path / "epochs.csv").read_text().splitlines()
    assert lines[0] == "model,cpus_per_gpu,epoch_s,data_GB,memory_MBps,steps"
    assert [line.split(",")[0:2] for line in lines[1:]] == [["vision", "1.0"]]
    read_profiles(tmp_path)


def test_other_networks_of_the_table_stay_and_the_same_one_is_replaced(tmp_path: Path) -> None:
    write_epochs(tmp_path, "text", {1.0: 9.0, 3.0: 4.0}, 10.0, 5000.0, 100.0)
    write_epochs(tmp_path, "vision", {1.0: 7.0}, 100.0, 5000.0, 10.0)
    write_epochs(tmp_path, "vision", {2.0: 5.0}, 100.0, 5000.0, 10.0)

    rows = [line.split(",")[:3] for line in (tmp_path / "epochs.csv").read_text().splitlines()[1:]]
    assert rows == [["text", "1.0", "9.0"], ["text", "3.0", "4.0"], ["vision", "2.0", "5.0"]]


@pytest.mark.parametrize(
    ("more", "cpus", "what"),
    [
        (("--", sys.executable, "-c", "raise SystemExit('no data')"), 1, "an epoch with 1 CPUs ended with exit code 1: no data"),
        (("--", sys.executable, "-c", "pass"), 100_000, "this process may use"),
        (("--", "no-such-program"), 1, "cannot run no-such-program"),
        (("--gpus", "2", "--", sys.executable), 1, "1 CPUs for 2 GPUs"),
        ((), 1, "no epoch to run"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], cpus: int, what: str
) -> None:
    before = os.sched_getaffinity(0)

    assert run(tmp_path, *more, cpus=cpus) != 0

    assert what in capsys.readouterr().err
    assert os.sched_getaffinity(0) == before
    assert not (tmp_path / "epochs.csv").exists()
