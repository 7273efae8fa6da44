"""CPU seconds of Gandiva on the engine: turns, and turns per server with packing, migration and growth.

    python -m benchmarks gandiva [--jobs 100] [--cluster 2x8]

Jobs of the generator `gandiva`, and twice and four times as many on the same servers; kernels compiled.
"""

from __future__ import annotations

import argparse
from time import process_time

from gantline import Trace, simulate

POLICIES = ("gandiva", "gandiva.introspective")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--jobs", type=int, default=100)
    options.add_argument("--cluster", default="2x8")
    given = options.parse_args()
    for policy in POLICIES:
        for times in (0, 1, 2, 4):  # the first one compiles
            jobs = max(times, 1) * given.jobs
            trace = Trace.generate("gandiva", 0, jobs=jobs)
            began = process_time()
            run = simulate(trace, given.cluster, policy, performance="utilisation")
            took, decisions = process_time() - began, run.summary["decisions"]
            if times:
                print(
                    f"{policy:22} {jobs:5} jobs {decisions:6} decisions {took:7.2f} CPU s {1000 * took / decisions:7.3f} ms each",
                    flush=True,
                )


if __name__ == "__main__":
    main()
