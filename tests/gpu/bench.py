"""A runner with orders of our own: what the tests on a GPU have in common."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import contact_of, end_all

from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner_events import RunnerEvents

ROOT = Path(__file__).parents[2]
LIMIT = 180.0  # seconds after which a test gives up waiting, however slow the machine

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed; it is an extra")


def has_gpu() -> bool:
    """Whether torch sees a GPU."""
    if not HAS_TORCH:
        return False
    import torch

    return bool(torch.cuda.is_available())


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no CUDA device, or no torch that sees it")


class Bench:
    """Jobs by row; row k is the job ``job{k}``."""

    def __init__(self, home: Path, devices: str, launches: list[Launch], preload: tuple[str, ...] = ()) -> None:
        self.home, self.runner = home, LocalRunner(home, devices, preload=preload)
        self.received: list[Report] = []
        self.runner.attach(contact_of(self.runner, launches.__getitem__, self._tell))

    def _tell(self, events: RunnerEvents) -> None:
        self.received += [report for report, _ in events.reports]

    def order(self, verb: Verb, row: int, epoch: int, devices: tuple[int, ...] = (), **more: Any) -> None:
        self.runner.send(Order(verb, row, epoch, devices, **more), 0.0)

    def start(self, row: int, epoch: int, devices: tuple[int, ...], **more: Any) -> None:
        self.order(Verb.START, row, epoch, devices, **more)

    def until(self, true: Callable[[], Any], what: str) -> Any:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if found := true():
                return found
            time.sleep(0.02)
        raise AssertionError(f"{what}; heard {[(one.news.value, one.row, one.epoch) for one in self.received]}; {self.output(0)}")

    def news(self, news: News, row: int, epoch: int) -> Report:
        found: Report = self.until(
            lambda: next((one for one in self.received if (one.news, one.row, one.epoch) == (news, row, epoch)), None),
            f"no '{news.value}' of row {row}, epoch {epoch}",
        )
        return found

    def output(self, row: int) -> str:
        """What it has said in all of its lives."""
        return "".join(path.read_text() for path in sorted((self.home / "jobs" / f"job{row}").glob("*/log")))

    def processes(self, row: int) -> list[int]:
        """The process of each rank."""
        return [one["pid"] for one in self.runner.known[f"job{row}"].state["ranks"]]


@contextmanager
def bench(home: Path, devices: str, *launches: Launch, preload: tuple[str, ...] = ()) -> Iterator[Bench]:
    """A runner for the length of a test; no process outlives it."""
    one = Bench(home, devices, list(launches), preload)
    try:
        yield one
    finally:
        one.runner.close()
        end_all(home)


def python(*words: str, **more: Any) -> Launch:
    """A Python program with our sources, in the environment of the tests."""
    env = {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    env |= {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "CUDA_HOME") if name in os.environ}
    return Launch((sys.executable, *words), env=env, grace=30.0, **more)
