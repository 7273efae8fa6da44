"""What the synthesizer costs and what it gains, with Blox' nine combinations and rounds of 300 s.

    python -m benchmarks synthesizer [--jobs 4000] [--jobs-per-hour 9] [--every 1]
    python -m benchmarks synthesizer --changing [--seeds 6] [--every 10]
    python -m benchmarks synthesizer --trading [--seeds 6] [--every 1]
    python -m benchmarks synthesizer --live [--waiting 1000]

The first is a workload of Blox on 32 nodes of 4 GPUs: CPU seconds and mean JCT of the fixed combinations, and of the synthesizer that
chooses from them. The second is two workloads with changing load, after Blox' "dual load" (long jobs, and short ones that come for six
hours of every ten) and "small/large" (short jobs all at once every four hours), on 16 nodes of 4 GPUs: mean JCT in proportion to that of
the best fixed combination of each seed. The third alternates between light and heavy load on 8 nodes of 4 GPUs, with an objective that
trades mean JCT against responsiveness: the score of the synthesizer in proportion to that of each policy of its portfolio. The fourth is a
scheduler at work with many jobs that wait: how long its own thread is held up while the policy decides beside it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from scipy.stats import t

from gantline import Run, Trace, simulate
from gantline.policies.registry import make_policy
from gantline.simulator.objective import Objective
from gantline.traces.generators import generate

FIXED = [(name, admission) for name in ("fifo", "las", "srtf") for admission in ("accept-all", "load-limit:1.2", "load-limit:1.4")]


def mean_jct(run: Run) -> float:
    """Seconds."""
    return float((run.jobs["finish"] - run.jobs["arrival"]).mean())


def told(name: str, run: Run, seconds: float) -> None:
    """One line."""
    print(f"{name}: mean JCT {mean_jct(run) / 3600:.2f} h, {run.summary['decisions']} decisions, {seconds:.1f} CPU s", flush=True)


def light_and_heavy(seed: int, hours: float = 72.0, devices: int = 32) -> Trace:
    """Jobs of minutes to hours at 0.8 and, every other twelve hours, 1.3 times what the devices can do."""
    random, rows, now = np.random.default_rng(seed), [], 0.0

    def work() -> float:
        return float(60.0 * 10.0 ** (random.uniform(1.0, 2.2) if random.random() < 0.8 else random.uniform(2.2, 2.8)))

    mean = float(np.mean([work() for _ in range(4000)]))
    while now < hours * 3600.0:
        load = 1.3 if int(now // 43_200.0) % 2 else 0.8
        now += float(random.exponential(mean / (devices * load)))
        rows.append({"job": f"j{len(rows)}", "arrival": now, "gpus": 1, "duration": work()})
    return Trace.from_records(rows)


def trading(seeds: int, every: int) -> None:
    """A score that trades completion times against first starts, of each fixed policy in proportion to the synthesizer's."""
    objective, names = Objective.parse("0.5*mean-jct+0.5*responsiveness"), ("fifo", "las", "srtf")
    settings = {"portfolio": names, "objective": str(objective), "every": every, "margin": 0.0}
    ratios: dict[str, list[float]] = {name: [] for name in names}
    for seed in range(seeds):
        trace = light_and_heavy(seed)
        runs = {name: simulate(trace, "8x4", name, round=300.0) for name in names}
        runs["synthesizer"] = simulate(trace, "8x4", make_policy("synthesizer", settings), round=300.0)
        values = {
            name: {"mean-jct": run.summary["average_jct"], "responsiveness": run.summary["average_responsiveness"]}
            for name, run in runs.items()
        }
        scores = {name: objective.score(values[name], values["fifo"]) for name in runs}
        for name in names:
            ratios[name].append(scores["synthesizer"] / scores[name])
        told = ", ".join(f"{name} {score:.3f}" for name, score in scores.items())
        print(f"light and heavy, seed {seed}: {told}; {len(runs['synthesizer'].summary['in_charge'])} in charge", flush=True)
    for name, found in ratios.items():
        half = float(t.ppf(0.975, seeds - 1) * np.std(found, ddof=1) / np.sqrt(seeds)) if seeds > 1 else float("nan")
        print(f"synthesizer against {name}: {np.mean(found):.3f} +- {half:.3f} (95 %), at most {max(found):.3f}", flush=True)


def changing(seeds: int, every: int) -> None:
    """One line for each workload and seed, and the mean of each workload."""
    for kind in ("dual", "small-large"):
        ratios = []
        for seed in range(seeds):
            trace = generate("blox-changing", seed=seed, kind=kind)
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
    parser.add_argument("--trading", action="store_true")
    parser.add_argument("--live", action="store_true")
    parser.add_argument("--waiting", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=6)
    given = parser.parse_args()
    if given.live:
        from benchmarks._held_up import live

        live(given.waiting)
        return
    if given.trading:
        trading(given.seeds, given.every or 1)
        return
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
