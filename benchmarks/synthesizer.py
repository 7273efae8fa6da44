"""What the synthesizer costs: nine combinations at every round over a workload of Blox, 32 nodes of 4 GPUs, rounds of 300 s.

    python -m benchmarks synthesizer [--jobs 4000] [--jobs-per-hour 9] [--every 1]

Told are CPU seconds of the run, its mean JCT, and those of the fixed combinations beside it.
"""

from __future__ import annotations

import argparse
import time

from gantline import Run, simulate
from gantline.policies.registry import make_policy
from gantline.workload.generators import generate


def told(name: str, run: Run, seconds: float) -> None:
    """One line."""
    jct = float((run.jobs["finish"] - run.jobs["arrival"]).mean())
    print(f"{name}: mean JCT {jct / 3600:.2f} h, {run.summary['decisions']} decisions, {seconds:.1f} CPU s", flush=True)


def main() -> None:
    """Print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=4000)
    parser.add_argument("--jobs-per-hour", type=float, default=9.0)
    parser.add_argument("--every", type=int, default=1)
    given = parser.parse_args()
    trace = generate("blox", seed=1, jobs=given.jobs, list_jobs=given.jobs, jobs_per_hour=given.jobs_per_hour)
    for name in ("fifo", "las", "srtf"):
        for admission in ("accept-all", "load-limit:1.2", "load-limit:1.4"):
            began = time.process_time()
            run = simulate(trace, "32x4", name, regime="blox", admission=admission)
            told(f"{name} behind {admission}", run, time.process_time() - began)
    began = time.process_time()
    run = simulate(trace, "32x4", make_policy("synthesizer", {"compat": "blox", "every": given.every}), regime="blox")
    told("synthesizer", run, time.process_time() - began)


if __name__ == "__main__":
    main()
