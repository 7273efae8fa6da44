"""Decisions of Themis, heet-like and Shockwave and one fit of the elastic filter, as jobs and GPUs grow. CPU milliseconds.

    python -m benchmarks goodput

Fits, searches and whole workloads of Pollux are in `pollux`, decisions and runs of Sia in `sia`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy
from gantline.systems.heet.policies.variants import ElasticFilter
from gantline.systems.shockwave.policies import PlanningWindow, plan_window

SIZES = ((8, 10), (16, 40), (64, 160))  # nodes of four GPUs, jobs


def main() -> None:
    for nodes, count in SIZES:
        jobs = waiting(count)
        snapshot = decode_snapshot({"cluster": f"{nodes}x4", "now": 600.0, "jobs": jobs})
        for f in (0.8, 0.0):
            told = milliseconds(lambda f=f, snapshot=snapshot: make_policy("themis", {"f": f}).decide(snapshot))
            print(f"themis, f={f}: {count:4d} apps, {4 * nodes:4d} GPUs: {told:8.1f} ms an auction")
    for nodes, count in SIZES:
        third = max(nodes // 3, 1)
        snapshot = decode_snapshot({"cluster": f"slow:{third}x4,mid:{third}x4,fast:{third}x4", "now": 600.0, "jobs": elastic(count)})
        told = milliseconds(lambda snapshot=snapshot: make_policy("heet-like").decide(snapshot))
        print(f"heet-like: {count:4d} jobs, {12 * third:4d} GPUs: {told:8.1f} ms a decision")
    for count in (20, 60, 200):
        table = np.random.default_rng(0).uniform(1.0, 8.0, (count, 5, 8))
        table[np.random.default_rng(1).random(table.shape) < 0.8] = np.nan
        told = milliseconds(lambda table=table: ElasticFilter().complete(table))
        print(f"elastic filter: {count:4d} jobs x 5 types x 8 counts: {told:8.1f} ms")
    for count in (30, 101, 200):
        print(f"shockwave: {count:4d} jobs, 32 GPUs: {milliseconds(lambda count=count: plan_window(window(count))):8.1f} ms a plan")


def waiting(count: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    sizes, lengths = rng.choice([1, 2, 4, 8], count, p=[0.4, 0.25, 0.25, 0.1]), np.exp(rng.uniform(6.4, 9.9, count))
    return [{"id": f"j{k}", "gpus": int(sizes[k]), "arrival": 5.0 * k, "estimate": float(lengths[k])} for k in range(count)]


def elastic(count: int) -> list[dict[str, Any]]:
    rng, speed = np.random.default_rng(0), {"slow": 1.0, "mid": 2.0, "fast": 4.0}
    found = []
    for k in range(count):
        serial, gain = rng.uniform(0.01, 0.25), rng.uniform(0.5, 1.1)
        variants = [{"type": t, "gpus": g, "rate": s**gain / (serial + (1 - serial) / g)} for t, s in speed.items() for g in (1, 2, 4)]
        found.append(
            {"id": f"j{k}", "gpus": 1, "max_gpus": 4, "arrival": 5.0 * k, "estimate": float(rng.uniform(1e3, 4e4)), "options": variants}
        )
    return found


def window(count: int) -> PlanningWindow:
    rng = np.random.default_rng(0)
    epochs, duration = rng.integers(10, 100, count).astype(float), rng.uniform(20.0, 400.0, count)
    done = np.floor(epochs * rng.uniform(0.0, 0.9, count))
    late = np.where(rng.random(count) < 0.2, rng.uniform(1.0, 5.0, count), 1.0)
    return PlanningWindow(
        rng.choice([1, 2, 4, 8], count, p=[0.6, 0.3, 0.09, 0.01]), epochs, done, duration, (epochs - done) * duration, late, 32
    )


def milliseconds(run: Callable[[], Any]) -> float:
    """CPU time of the second of two runs, so that kernels are compiled."""
    run()
    began = time.process_time()
    run()
    return 1e3 * (time.process_time() - began)


if __name__ == "__main__":
    main()
