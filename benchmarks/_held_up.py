"""How long a scheduler's own thread is held up while its policy decides beside it.

A scheduler with two CPU slots and many jobs that wait. While a decision is made, its thread waits for requests; a bell rings every
millisecond, and what counts is the CPU time of the process from the bell to the moment at which the thread has woken up: what others do
on the machine is left out.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gantline.live.jobs.spec import JobSpec
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore

_DECISIONS = 20


def live(waiting: int) -> None:
    """One line for a policy without futures, and one for each portfolio: with futures that count devices, and with the engine's."""
    fixed = {"portfolio": "fifo,las,srtf", "every": 1}
    for name, policy, settings in (
        ("srtf", "srtf", {}),
        ("synthesizer", "synthesizer", fixed),
        ("synthesizer, 20 draws", "synthesizer", {**fixed, "draws": 20}),
        ("synthesizer, by the engine", "synthesizer", {**fixed, "portfolio": "fifo(backfill=easy),srtf"}),
    ):
        with tempfile.TemporaryDirectory() as home:
            late, took = _watch(Path(home), policy, settings, waiting)
        if not late:
            print(
                f"{name}, {waiting} jobs wait: {len(took)} decisions of {1e3 * float(np.median(took)):.1f} ms, too short to be rung in",
                flush=True,
            )
            continue
        held, middle = np.sort(late) * 1e3, 1e3 * float(np.median(took))
        most = held[int(0.99 * (len(held) - 1))]
        print(
            f"{name}, {waiting} jobs wait: {len(took)} decisions of {middle:.1f} ms (median); the scheduler's thread wakes up after "
            f"{np.median(held):.2f} ms (median), {most:.2f} ms (99 %), {held[-1]:.2f} ms (longest of {len(held)})",
            flush=True,
        )


def _watch(home: Path, policy: str, settings: dict[str, Any], waiting: int) -> tuple[list[float], list[float]]:
    scheduler = Scheduler(MemoryStore(), LocalRunner(home, "cpu:2"), policy, settings=settings)
    late: list[float] = []
    took: list[float] = []
    scheduler.start()
    plain = scheduler.decision_thread.in_thread

    def watched(call: Any, budget: float, serve: Callable[[Callable[[], bool]], None], ring: Callable[[], None]) -> Any:
        over, rung = threading.Event(), [0.0]

        def bell() -> None:
            while not over.wait(0.001):
                rung[0] = rung[0] or time.process_time()
                ring()

        def woken(busy: Callable[[], bool]) -> bool:
            if rung[0]:
                late.append(time.process_time() - rung[0])
                rung[0] = 0.0
            return busy()

        began, ringer = time.perf_counter(), threading.Thread(target=bell, daemon=True)
        ringer.start()
        try:
            return plain(call, budget, lambda busy: serve(lambda: woken(busy)), ring)
        finally:
            over.set()
            ringer.join()
            took.append(time.perf_counter() - began)

    try:
        for place in range(10):
            scheduler.submit(_sleeping(60.0 + 10.0 * place, waiting // 10))
        time.sleep(2.0)
        scheduler.submit(_sleeping(45.0))  # what has to be compiled or loaded is
        time.sleep(2.0)
        scheduler.decision_thread.in_thread = watched  # type: ignore[method-assign]
        for place in range(_DECISIONS):
            scheduler.submit(_sleeping(30.0 + place))
            time.sleep(0.3)
    finally:
        scheduler.stop()
        _end_all(home)
    return late, took


def _sleeping(estimate: float, count: int = 0) -> JobSpec:
    return JobSpec(run=["sleep", "3600"], estimate=estimate, array=f"0-{count - 1}" if count else None)


def _end_all(home: Path) -> None:
    """No process outlives the measurement."""
    runner = LocalRunner(home, "cpu:1")
    runner.adopt()
    left = runner.known.alive()
    for one in left:
        one.write_order(want="stop", grace=0.0)
    while not all(one.abandoned() for one in left):
        time.sleep(0.05)
