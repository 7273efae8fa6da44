"""A hint may not slow a run: `valid_until()` on an order whose key is read, beside the same order without it.

    python -m benchmarks hints [--jobs 8000]

CPU seconds of whole runs, the least of five, taking turns; both must give the same log.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from typing import ClassVar

from gantline import Trace, simulate
from gantline.core.arrays import Floats
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot

TURNS = 5


class Shortest(OrderPolicy):
    """Least work left first."""

    name: ClassVar[str] = "no hint"
    paper: ClassVar[str] = "folklore"

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.remaining


class Endless(Shortest):
    """The order holds until something happens."""

    name: ClassVar[str] = "endless"

    def valid_until(self, snapshot: Snapshot) -> float | None:
        return math.inf


class Until(Shortest):
    """The order holds for an hour."""

    name: ClassVar[str] = "an hour"

    def valid_until(self, snapshot: Snapshot) -> float | None:
        return snapshot.now + 3600.0


class NextRound(Shortest):
    """The order holds until the next round."""

    name: ClassVar[str] = "none"

    def valid_until(self, snapshot: Snapshot) -> float | None:
        return None


def main() -> None:
    """A line per hint."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=8000)
    trace = Trace.generate("day", 0, jobs=options.parse_args().jobs, gpus=256, load=0.9)
    policies = (Shortest(), Endless(), Until(), NextRound())
    least, logs = dict.fromkeys((policy.name for policy in policies), math.inf), set()
    for _ in range(TURNS):
        for policy in policies:
            gc.collect()
            began = time.process_time()
            run = simulate(trace, "64x4", policy, round="60s")
            least[policy.name] = min(least[policy.name], time.process_time() - began)
            logs.add(run.summary["log_hash"])
    assert len(logs) == 1, "the same order gave other logs"
    for name, seconds in least.items():
        print(f"{name:<10}{seconds:>8.3f}  {seconds / least[Shortest.name]:.2f}")


if __name__ == "__main__":
    main()
