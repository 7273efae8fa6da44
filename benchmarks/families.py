"""CPU seconds of whole runs of policies that size jobs: 5,000 elastic jobs on 1,024 GPUs, rounds of 60 s, 30 s for every change.

    python -m benchmarks families [--jobs 1000] [--policies sia,lyra] [--per-hour 70] [--cluster gpu:128x8 | old:64x8,new:64x8]

Per policy: CPU seconds from a trace in memory to the summary, kernels compiled; decisions of the policy, how many jobs they are about,
their milliseconds (mean, P99, most), what of the run the policy itself takes, and the beginning of the log's hash, by which two versions
are compared.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from gantline import Trace, simulate
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.registry import make_policy
from gantline.traces.options import format_options, parse_options

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "sia": ("sia", {}),
    "lyra": ("lyra", {}),
    "optimus": ("optimus", {}),
    "elasticflow": ("elasticflow", {}),
    "themis": ("themis", {}),
    "pollux": ("pollux", {}),
    "pollux-bounded": ("pollux", {"size": 40, "work": 50_000}),
}
WARM_UP = 150  # jobs of the run that compiles the kernels


@contextmanager
def decision_clock(policy: Policy) -> Iterator[list[tuple[int, float]]]:
    """Jobs and CPU seconds of every decision."""
    noted: list[tuple[int, float]] = []
    kind, decide = type(policy), type(policy).decide

    def timed(self: Policy, snapshot: Snapshot) -> Plan:
        began = time.process_time()
        plan = decide(self, snapshot)
        noted.append((len(snapshot.jobs), time.process_time() - began))
        return plan

    kind.decide = timed  # type: ignore[method-assign]
    try:
        yield noted
    finally:
        kind.decide = decide  # type: ignore[method-assign]


def trace_of(jobs: int, per_hour: float, kinds: list[str]) -> Trace:
    """Every job may run on all types, on each of the others at 0.3 to 1.6 times the speed of the first."""
    trace = Trace.generate("elastic", 0, jobs=jobs, jobs_per_hour=per_hour, type=kinds[0])
    if len(kinds) == 1:
        return trace
    speed = np.random.default_rng(0).uniform(0.3, 1.6, (jobs, len(kinds)))
    speed[:, 0] = 1.0
    options = []
    for cell, faster in zip(trace.frame["options"].to_list(), speed.tolist()):
        variants = parse_options(cell)
        options.append(format_options(w._replace(type=kind, duration=w.duration / by) for kind, by in zip(kinds, faster) for w in variants))
    return Trace(trace.frame.with_columns(pl.Series("options", options)), trace.source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--per-hour", type=float, default=70.0)
    parser.add_argument("--cluster", default="gpu:128x8")
    parser.add_argument("--policies", default=",".join(POLICIES))
    asked = parser.parse_args()
    gc.set_threshold(50_000, 20, 100)  # as the command line has it
    how: dict[str, Any] = {"round": "60s", "costs": "30"}
    kinds = [part.split(":")[0] for part in asked.cluster.split(",")]
    print(f"{'':<14}{'CPU s':>8}{'decisions':>11}{'jobs':>6}{'most':>6}{'ms':>9}{'P99':>9}{'most':>9}{'of it %':>9}  log")
    for name in asked.policies.split(","):
        policy = make_policy(*POLICIES[name])
        simulate(trace_of(WARM_UP, asked.per_hour, kinds), asked.cluster, policy, **how)
        with decision_clock(policy) as noted:
            trace = trace_of(asked.jobs, asked.per_hour, kinds)
            began = time.process_time()
            run = simulate(trace, asked.cluster, policy, **how)
            spent = time.process_time() - began
        jobs, seconds = np.array(noted).T
        cells = f"{spent:>8.1f}{len(noted):>11,}{jobs.mean():>6.0f}{jobs.max():>6.0f}"
        cells += f"{1e3 * seconds.mean():>9.2f}{1e3 * np.percentile(seconds, 99):>9.1f}{1e3 * seconds.max():>9.1f}"
        print(f"{name:<14}{cells}{100 * seconds.sum() / spent:>9.0f}  {run.summary['log_hash'][:12]}", flush=True)


if __name__ == "__main__":
    main()
