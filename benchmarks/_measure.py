"""What the tables of `core` share: the machine in a line, CPU seconds of a run and of its loop, and the history of both."""

from __future__ import annotations

import csv
import gc
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba

from gantline import Trace, simulate
from gantline.core.policy import Policy
from gantline.engine.drivers import record_loop as dense
from gantline.simulator.run import Run

HISTORY = Path(__file__).parent / "history.csv"
_COLUMNS = ("label", "machine", "measure", "cpu_seconds")


def machine() -> str:
    """Processor, Python and Numba."""
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.split(":")[1].strip() for line in told.splitlines() if line.startswith(("model name", "CPU part"))]
    chip = models[0] if models else platform.processor()
    return f"{platform.machine()} {chip}, Python {platform.python_version()}, Numba {numba.__version__}"


@contextmanager
def loop_clock() -> Iterator[list[float]]:
    """Adds up, in its one place, the CPU seconds spent inside the loop on records."""
    spent, loop = [0.0], dense.run_records

    def timed(*arguments: Any) -> int:
        began = time.process_time()
        code = loop(*arguments)
        spent[0] += time.process_time() - began
        return code

    dense.run_records = timed  # type: ignore[assignment]
    try:
        yield spent
    finally:
        dense.run_records = loop


def timed(trace: Trace, cluster: str, policy: Policy, repeats: int = 3, **settings: Any) -> tuple[float, float, Run]:
    """Fewest CPU seconds from a trace in memory to the summary, those of the loop in it, and the run.

    The run before is freed and garbage collected outside of what is timed: a run pays for its own memory only, as the floor does.
    """
    best, inside, run = float("inf"), 0.0, None
    for _ in range(repeats):
        run = None
        gc.collect()
        with loop_clock() as spent:
            began = time.process_time()
            run = simulate(trace, cluster, policy, **settings)
            seconds = time.process_time() - began
        if seconds < best:
            best, inside = seconds, spent[0]
    assert run is not None
    return best, inside, run


class History:
    """Measures of one day, printed beside what was recorded before, and recorded where a label is given."""

    def __init__(self, label: str | None) -> None:
        self.label, self.rows = label, []
        self.known: dict[str, list[tuple[str, float]]] = {}
        if HISTORY.exists():
            with HISTORY.open(newline="") as lines:
                for row in csv.DictReader(lines):
                    self.known.setdefault(row["measure"], []).append((row["label"], float(row["cpu_seconds"])))

    def add(self, measure: str, seconds: float) -> str:
        """Note one number; what it was before comes back."""
        self.rows.append((self.label, machine(), measure, f"{seconds:.3f}"))
        before = self.known.get(measure, [])
        return f"(was {', '.join(f'{value:g} {label}' for label, value in before[-2:])})" if before else ""

    def write(self) -> None:
        if self.label is None:
            return
        new = not HISTORY.exists()
        with HISTORY.open("a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(_COLUMNS)
            writer.writerows(self.rows)
