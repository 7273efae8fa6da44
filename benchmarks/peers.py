"""Gantline beside a general simulator that does the same: a short SimPy script that only counts GPUs.

    python -m benchmarks peers [--jobs 80000]

SimPy is skipped, and that is said, where it is not installed (extra `bench`). CPU seconds from jobs in memory to the mean
completion time, best of three; a ratio is printed only where the schedules are equal. AccaSim 1.1.3 would be the other peer, but it
cannot be imported on Python 3.10 and later.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.core import philly

from gantline import Trace, simulate

GPUS = 512


def simpy_fifo(jobs: list[tuple[float, int, float]], gpus: int) -> float:
    """First come first served, whoever fits may pass. The mean completion time.

    One process per job, as SimPy's own examples do it: it arrives, waits for its turn, runs. A queue per gang size spares the search; turns
    are given once per instant, after everything else has happened, as Gantline does.
    """
    import simpy

    env = simpy.Environment()
    free, spent, asked = gpus, 0.0, -1.0
    queues: dict[int, deque[tuple[int, Any]]] = {size: deque() for size in sorted({size for _, size, _ in jobs})}

    def ask() -> None:
        nonlocal asked
        if asked < env.now:
            asked = env.now
            turns = env.event()
            turns._ok, turns._value = True, None
            turns.callbacks.append(fill)
            env.schedule(turns, priority=2)

    def fill(_: Any) -> None:
        nonlocal free
        while heads := [queue[0] for size, queue in queues.items() if size <= free and queue]:
            number, turn = min(heads, key=lambda head: head[0])
            queues[jobs[number][1]].popleft()
            free -= jobs[number][1]
            turn.succeed()

    def job(number: int, arrival: float, size: int, duration: float) -> Iterator[Any]:
        nonlocal free, spent
        yield env.timeout(arrival)
        turn = env.event()
        queues[size].append((number, turn))
        ask()
        yield turn
        yield env.timeout(duration)
        free += size
        spent += env.now - arrival
        ask()

    for number, row in enumerate(jobs):
        env.process(job(number, *row))
    env.run()
    return spent / len(jobs)


def best(action: Callable[[], float], repeats: int = 3) -> tuple[float, float]:
    """Fewest CPU seconds, and what the action found."""
    seconds, found = float("inf"), float("nan")
    for _ in range(repeats):
        began = time.process_time()
        found = action()
        seconds = min(seconds, time.process_time() - began)
    return seconds, found


def compare(jobs: int) -> None:
    """FIFO in which whoever fits may pass, on events."""
    trace = philly()
    trace = Trace(trace.frame.head(jobs), trace.source)
    rows = list(trace.frame.select("arrival", "gpus", "duration").iter_rows())
    ours, mean = best(lambda: float(simulate(trace, f"{GPUS // 8}x8", "fifo", settings={"backfill": "skip"}).summary["average_jct"]))
    if importlib.util.find_spec("simpy") is None:
        print(f"{len(rows):>7,} jobs: ours {ours:.3f} s; SimPy is not installed")
        return
    theirs, found = best(lambda: simpy_fifo(rows, GPUS))
    equal = abs(found - mean) <= 1e-9 * max(mean, 1.0)
    ratio = f"{theirs / ours:.1f} times" if equal else f"another schedule (mean {found:.3f} s, ours {mean:.3f} s)"
    print(f"{len(rows):>7,} jobs: ours {ours:.3f} s, SimPy {theirs:.3f} s, {ratio}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks peers")
    parser.add_argument("--jobs", type=int, default=80_000)
    options = parser.parse_args(arguments)
    simulate(philly().frame.head(50), "64x8", "fifo", settings={"backfill": "skip"})  # compile
    for jobs in (options.jobs // 8, options.jobs):
        compare(jobs)


if __name__ == "__main__":
    main(sys.argv[1:])
