"""What the synthesizer costs and what it gains, with Blox' nine combinations and rounds of 300 s.

    python -m benchmarks synthesizer [--jobs 4000] [--jobs-per-hour 9] [--every 1]
    python -m benchmarks synthesizer --changing [--seeds 6] [--every 10]

The first is a workload of Blox on 32 nodes of 4 GPUs: CPU seconds and mean JCT of the fixed combinations, and of the synthesizer that
chooses from them. The second is two workloads with changing load, after Blox' "dual load" (long jobs, and short ones that come for six
hours of every ten) and "small/large" (short jobs all at once every four hours), on 16 nodes of 4 GPUs: mean JCT in proportion to that of
the best fixed combination of each seed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from gantline import Run, Trace, simulate
from gantline.policies.registry import make_policy
from gantline.workload.generators import generate

FIXED = [(name, admission) for name in ("fifo", "las", "srtf") for admission in ("accept-all", "load-limit:1.2", "load-limit:1.4")]


def mean_jct(run: Run) -> float:
    """Seconds."""
    return float((run.jobs["finish"] - run.jobs["arrival"]).mean())


def told(name: str, run: Run, seconds: float) -> None:
    """One line."""
    print(f"{name}: mean JCT {mean_jct(run) / 3600:.2f} h, {run.summary['decisions']} decisions, {seconds:.1f} CPU s", flush=True)


def changing_load(kind: str, seed: int, hours: int = 60) -> Trace:
    """Long jobs all the time, and short ones in bursts."""
    random, rows = np.random.default_rng(seed), []
    per_hour = {"dual load": 6.0, "small/large": 5.0}[kind]

    def arrivals(rate: float) -> list[float]:
        found, now = [], 0.0
        while now < hours * 3600.0:
            now += float(np.ceil(random.exponential(3600.0 / rate)))
            found.append(now)
        return found

    rows += [(at, float(random.integers(36000, 86400))) for at in arrivals(per_hour)]
    short = (
        arrivals(4 * per_hour)
        if kind == "dual load"
        else np.repeat(np.arange(14400.0, hours * 3600.0, 14400.0), 4 * int(per_hour)).tolist()
    )
    rows += [(at, float(random.integers(600, 3600))) for at in short if kind == "small/large" or at % 36000.0 < 21600.0]
    return Trace.from_records([{"job": f"j{k}", "arrival": at, "gpus": 1, "duration": work} for k, (at, work) in enumerate(sorted(rows))])


def changing(seeds: int, every: int) -> None:
    """One line for each workload and seed, and the mean of each workload."""
    for kind in ("dual load", "small/large"):
        ratios = []
        for seed in range(seeds):
            trace = changing_load(kind, seed)
            fixed = {f"{name}+{rule}": mean_jct(simulate(trace, "16x4", name, regime="blox", admission=rule)) for name, rule in FIXED}
            ours = mean_jct(simulate(trace, "16x4", make_policy("synthesizer", {"compat": "blox", "every": every}), regime="blox"))
            best = min(fixed, key=lambda name: fixed[name])
            ratios.append(ours / fixed[best])
            print(f"{kind}, seed {seed}: {ours / 3600:.2f} h, best {best} {fixed[best] / 3600:.2f} h, ratio {ratios[-1]:.4f}", flush=True)
        print(f"{kind}: {np.mean(ratios):.4f} of the best fixed combination, at most {max(ratios):.4f}", flush=True)


def main() -> None:
    """Print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=4000)
    parser.add_argument("--jobs-per-hour", type=float, default=9.0)
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--changing", action="store_true")
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    if given.changing:
        changing(given.seeds, given.every or 10)
        return
    trace = generate("blox", seed=1, jobs=given.jobs, list_jobs=given.jobs, jobs_per_hour=given.jobs_per_hour)
    for name, admission in FIXED:
        began = time.process_time()
        run = simulate(trace, "32x4", name, regime="blox", admission=admission)
        told(f"{name} behind {admission}", run, time.process_time() - began)
    began = time.process_time()
    run = simulate(trace, "32x4", make_policy("synthesizer", {"compat": "blox", "every": given.every or 1}), regime="blox")
    told("synthesizer", run, time.process_time() - began)


if __name__ == "__main__":
    main()
