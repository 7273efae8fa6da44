"""The examples run: by themselves, stopped and resumed, and as gangs that are resized."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed; it is an extra")


def _start(example: str, *words: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GANTLINE")}
    clean |= {"PYTHONPATH": str(ROOT / "src"), "GANTLINE_CHECKPOINT": str(folder / "checkpoint"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(ROOT / "examples" / example), *words]
    return subprocess.Popen(command, env=clean | environment, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def _run(example: str, *words: str, folder: Path, code: int = 0, **environment: str) -> str:
    folder.mkdir(exist_ok=True)
    process = _start(example, *words, folder=folder, **environment)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return out


def test_the_plain_example_ends_at_the_same_weights_after_a_stop(tmp_path: Path) -> None:
    whole = _run("train_plain.py", folder=tmp_path / "whole")
    assert "after 64 steps" in whole
    (tmp_path / "parts").mkdir()
    process = _start("train_plain.py", "--pause", "0.3", folder=tmp_path / "parts")  # twenty seconds, if nobody stops it
    checkpoints = tmp_path / "parts" / "checkpoint"
    while process.poll() is None and not any(checkpoints.glob("0*")):
        if _listens(process.pid):
            process.send_signal(signal.SIGUSR1)
        time.sleep(0.02)
    process.terminate()
    process.communicate(timeout=300)
    assert process.returncode == 143
    steps = max(int(path.name.split(".")[0]) for path in checkpoints.iterdir())
    assert 0 < steps < 64
    assert _run("train_plain.py", folder=tmp_path / "parts") == whole


def test_the_library_imports_nothing_but_the_standard_library() -> None:
    code = "import sys, gantline.train; print(sorted({'torch','numpy','numba','httpx','pydantic'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, text=True, capture_output=True, check=True
    )
    assert done.stdout.strip() == "[]"


@needs_torch
def test_the_gpu_example_runs_on_what_there_is(tmp_path: Path) -> None:
    assert "after 12 steps" in _run("train_gpu.py", "--steps", "12", "--batch", "16", folder=tmp_path)


def _gang(world: int, epoch: int, folder: Path, leave_after: int) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GANTLINE_EPOCH": str(epoch)}
    words = ("--samples", "100", "--epochs", "3", "--leave-after", str(leave_after))
    ranks = [_start("train_ddp.py", *words, folder=folder, RANK=str(rank), **common) for rank in range(world)]
    told = [rank.communicate(timeout=300) for rank in ranks]
    for rank, (_, err) in zip(ranks, told):
        assert rank.returncode == (143 if leave_after else 0), err
    return told[0][0]


@needs_torch
def test_a_gang_is_resized_from_two_to_four_to_one_to_three(tmp_path: Path) -> None:
    """As often as it is resized, it ends where a gang that was left alone ends: 15 steps of the same samples."""
    for name in ("alone", "resized"):
        (tmp_path / name).mkdir()
    alone = _gang(2, 1, tmp_path / "alone", 0)
    assert "after 15 steps" in alone
    for epoch, world in enumerate((2, 4, 1), start=1):
        _gang(world, epoch, tmp_path / "resized", 4)
    resized = _gang(3, 4, tmp_path / "resized", 0)
    for one, other in zip(_numbers(alone), _numbers(resized), strict=True):
        assert one == pytest.approx(other, rel=1e-4)


def _numbers(line: str) -> list[float]:
    words = line.split()
    return [float(words[1]), float(words[3])]


def _listens(pid: int) -> bool:
    """Whether the process catches SIGUSR1 already: it would end a process that does not."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return False
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGUSR1 - 1) & 1)
