"""Jobs for tests: the smallest thing that a scheduler accepts as a specification, and a scheduler with a home of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, until

from gantline.core.inputs import Submit
from gantline.engine.drivers.journal import Replayed
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.runners.runner_events import RunnerEvents
from gantline.live.scheduler.loop_thread import WallClock
from gantline.live.scheduler.replay import replay_store
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore
from gantline.live.store.records import MemoryStore, Store

__all__ = ["LIMIT", "until"]
ENDED = ("succeeded", "failed", "cancelled", "timeout", "rejected")


@dataclass(frozen=True)
class Spec:
    """A command and what the engine is told."""

    way: Launch
    name: str = "job"
    job: dict[str, Any] = field(default_factory=dict)
    count: int = 0  # of an array

    def expand(self) -> list[Spec]:
        if not self.count:
            return [self]
        return [replace(self, way=replace(self.way, array_index=k), count=0) for k in range(self.count)]

    def first(self) -> Spec:
        return self.expand()[0]

    def to_submit(self, id: str, now: float) -> Submit:
        return Submit(now, {"id": id, "gpus": 1, **self.job})

    def launch(self) -> Launch:
        return self.way

    def launches(self, number: str) -> list[Launch]:
        return [replace(one.way, array=number) for one in self.expand()] if self.count else [self.way]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name}


def shell(line: str, gpus: int = 1, count: int = 0, **more: Any) -> Spec:
    """A line for /bin/sh."""
    told = {key: more.pop(key) for key in list(more) if key in ("estimate", "priority", "options", "min_gpus", "max_gpus", "queue", "user")}
    return Spec(Launch((line,), shell=True, **{"grace": 5.0, **more}), job={"gpus": gpus, **told}, count=count)


def state(scheduler: Scheduler, job: str) -> str:
    return scheduler.view().jobs[job].state


def submit(scheduler: Scheduler, line: str, gpus: int = 1, **more: Any) -> str:
    """Submit a line for /bin/sh; the job's id."""
    (job,) = scheduler.submit(shell(line, gpus, **more))
    return job


def until_running(scheduler: Scheduler, *jobs: str) -> None:
    until(lambda: {state(scheduler, job) for job in jobs} == {"running"}, f"{jobs} run")


def must_succeed(scheduler: Scheduler, *jobs: str) -> None:
    """Wait for jobs, of which none may end otherwise."""
    assert ended(scheduler, *jobs) == ["succeeded"] * len(jobs)


def replays(store: SqlStore | Path, **given: Any) -> Replayed:
    """A record gives the plans that were made; `store`: one that is open, or its file."""
    kept = SqlStore.open(store, write=False) if isinstance(store, Path) else store
    found = replay_store(kept, **given)
    assert found.difference is None, f"the record is not what was decided: {found.difference}"
    return found


def ended(scheduler: Scheduler, *jobs: str) -> list[str]:
    """Wait for jobs; their final states."""
    try:
        until(lambda: all(state(scheduler, job) in ENDED for job in jobs))
    except AssertionError:
        raise AssertionError(f"no end of {[scheduler.view().jobs[job] for job in jobs]}; {scheduler.view().incidents}") from None
    return [state(scheduler, job) for job in jobs]


@contextmanager
def running(home: Path, devices: str = "cpu:2", policy: str = "fifo", store: Store | None = None, **more: Any) -> Iterator[Scheduler]:
    """A scheduler at work; jobs that are left are ended with it."""
    scheduler = Scheduler(store if store is not None else MemoryStore(), LocalRunner(home, devices), policy, **more)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()
        end_all(home)


def contact_of(runner: Runner, launch: Callable[[int], Launch], tell: Callable[[RunnerEvents], None]) -> Contact:
    """A scheduler as a runner sees it, where row k is the job ``job{k}``."""
    clock = WallClock(time.time())
    return Contact(lambda row: Task(f"job{row}", launch(row)), lambda job: int(job[3:]), clock, tell, lambda: runner.cluster)


def alive_in(home: Path) -> list[Incarnation]:
    """Incarnations that are not over, as a restart finds them."""
    runner = LocalRunner(home, "cpu:1")
    runner.adopt()
    return runner.known.alive()


def end_all(home: Path) -> None:
    """No process of a test outlives it."""
    left = alive_in(home)
    for one in left:
        one.write_order(want="stop", grace=0.0)
    until(lambda: all(one.abandoned() for one in left), "the end of all keepers")
