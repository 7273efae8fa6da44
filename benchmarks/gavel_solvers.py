"""Times of Gavel's solvers by kinds of jobs, and how they compare with the plain program over single jobs.

Prints one row per problem: jobs, kinds, CPU milliseconds of a cold re-solve after one arrival and one departure (median), the
same for the per-job program on HiGHS (interior point without crossover), the ratio, and the difference of objectives.

    python benchmarks/gavel_solvers.py [--repeats 7]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from gantline.models.solvers.linear_programs import solve
from gantline.systems.gavel.policies.allocation import Allocation, isolated_throughput
from gantline.systems.gavel.policies.fair_policies import max_min_fairness, normaliser, strategy_proof, water_filling
from gantline.systems.gavel.policies.finish_policies import finish_time_fairness, makespan
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.optimised import solve_in_parts
from gantline.systems.gavel.policies.program import apart, constraints, kinds
from gantline.systems.gavel.policies.solving import level_program
from gantline.systems.gavel.policies.sum_policies import max_sum_throughput

MODELS, TYPES = 26, 3
Stream = Callable[[int], Instance]


def stream(jobs: int, *, packed: bool = False, gangs: bool = False) -> Stream:
    """Instances in which one job leaves and one arrives from call to call; n/4 devices of each of three types."""
    rng = np.random.default_rng(2)
    speeds = rng.uniform(0.5, 10.0, size=(MODELS, TYPES))
    slow = rng.uniform(0.3, 1.0, size=(MODELS, MODELS, TYPES))
    model = rng.integers(0, MODELS, size=jobs + 1000)
    scale = rng.choice([1, 2, 4], p=[0.7, 0.1, 0.2], size=MODELS)[model] if gangs else np.ones(len(model), dtype=np.int64)
    steps, elapsed = rng.uniform(1e3, 1e5, size=len(model)), rng.uniform(0, 1e5, size=len(model))

    def at(turn: int) -> Instance:
        rows = np.arange(turn, turn + jobs)
        mine = model[rows]
        pairs = None
        if packed:
            one, two = np.triu_indices(jobs, 1)
            equal = scale[rows[one]] == scale[rows[two]]
            members = np.stack((one[equal], two[equal]), axis=1)
            a, b = mine[members[:, 0]], mine[members[:, 1]]
            pairs = (members, np.stack((speeds[a] * slow[a, b], speeds[b] * slow[b, a]), axis=1))
        return Instance.of(
            types=["a", "b", "c"],
            capacity=[jobs // 4] * TYPES,
            throughput=speeds[mine],
            scale=scale[rows],
            pairs=pairs,
            steps=steps[rows],
            elapsed=elapsed[rows],
        )

    return at


def timed(act: Callable[[Instance], object], instances: Stream, repeats: int) -> tuple[float, list[object]]:
    """Median milliseconds of an act over successive instances (building the instance included), and its results."""
    act(instances(0))  # compile and load
    times, results = [], []
    for turn in range(1, repeats + 1):
        begin = process_time()
        results.append(act(instances(turn)))
        times.append(1e3 * (process_time() - begin))
    return median(times), results


def plain_level(demand: Callable[[Instance], np.ndarray]) -> Callable[[Instance], float]:  # type: ignore[type-arg]
    """The per-job program on HiGHS for goals of the form: throughput >= demand * level."""

    def act(instance: Instance) -> float:
        program = constraints(instance, apart(instance))
        return solve(level_program(program, demand(instance), np.zeros(len(instance))), "interior").objective

    return act


def plain_ratio(instance: Instance) -> float:
    """Finish-time fairness by bisection on rho to 1e-4, one per-job program each."""
    steps, elapsed = instance.needing("steps", "elapsed")
    total = steps / isolated_throughput(instance)
    program = constraints(instance, apart(instance))
    low, high = float((elapsed / total).max()), float(((elapsed + steps * 1e3) / total).max())
    while high > low * (1 + 1e-4):
        rho = (low + high) / 2
        needed = steps / np.maximum(rho * total - elapsed, 1e-9)
        reached = solve(level_program(program, needed, np.zeros(len(instance))), "interior").objective
        low, high = (low, rho) if reached >= 1.0 else (rho, high)
    return high


def row(
    name: str,
    jobs: int,
    ours: Callable[[Instance], Allocation],
    plain: Callable[[Instance], float] | None,
    instances: Stream,
    repeats: int,
    target: str = "",
    invert: bool = False,
) -> None:
    mine, found = timed(ours, instances, repeats)
    line = f"{name:34} {jobs:6} {len(kinds(instances(1))):6} {mine:10.2f}"
    if plain is not None:
        theirs, expected = timed(plain, instances, min(repeats, 3))
        value = found[0].objective  # type: ignore[attr-defined]
        off = abs((1.0 / value if invert else value) / float(expected[0]) - 1.0)  # type: ignore[arg-type]
        line += f" {theirs:10.1f} {theirs / mine:8.1f} {off:10.1e}"
    else:
        line += f" {'':10} {'':8} {'':10}"
    print(f"{line}  {target}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    las = plain_level(normaliser)
    duration = plain_level(lambda instance: instance.needing("steps")[0])
    print(f"{'problem':34} {'jobs':>6} {'kinds':>6} {'ms':>10} {'plain ms':>10} {'ratio':>8} {'off':>10}")
    row("max-min fairness", 2048, max_min_fairness, las, stream(2048), repeats, "aim: 20 ms")
    row("max-min fairness, gangs", 2048, max_min_fairness, las, stream(2048, gangs=True), repeats)
    row("finish-time fairness", 512, lambda i: finish_time_fairness(i)[0], plain_ratio, stream(512), repeats, "aim: 100 ms")
    row("packed max-min fairness", 128, max_min_fairness, las, stream(128, packed=True), repeats, "aim: 100 ms")
    row("packed max-min fairness, gangs", 128, max_min_fairness, las, stream(128, packed=True, gangs=True), repeats)
    row("packed, 4 parts (POP)", 512, lambda i: solve_in_parts(i, max_min_fairness, 4), None, stream(512, packed=True), 3)
    row("makespan", 512, makespan, duration, stream(512), repeats, invert=True)
    row("sum of throughput", 2048, max_sum_throughput, None, stream(2048), repeats)
    row("water filling", 128, water_filling, None, stream(128), 3)
    row("strategy-proof", 128, lambda i: strategy_proof(i)[0], None, stream(128), 3)


if __name__ == "__main__":
    main()
