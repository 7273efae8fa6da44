"""How long AlloX's matching takes: carried over from event to event, from nothing, and by SciPy over all slots.

Run it: ``python benchmarks/allox_matching.py``. Prints CPU milliseconds per solve (median) and ratios to SciPy, then
how the cost grows with the length of the queue. The cluster has devices of four types, most of them busy until
different times.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.arrays import Floats, Ints
from gantline.systems.allox.policies.matching import Matching, State, match, to_ticks

Instance = tuple[Floats, Ints, Floats]

TYPES = 4
MEAN_TIME = 3600.0


def instance(jobs: int, machines: int, seed: int, busy: float = 0.98) -> Instance:
    """Log-normal jobs with their own speed on each type, and machines busy for exponential times."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, TYPES, machines)
    release = np.where(rng.random(machines) < busy, rng.exponential(MEAN_TIME, machines), 0.0)
    base = rng.lognormal(np.log(MEAN_TIME), 1.0, jobs)
    return base[:, None] * rng.uniform(1.0, 8.0, (jobs, TYPES)), kinds, release


def changed(given: Instance, seed: int) -> tuple[Instance, Ints]:
    """One event later: a minute passes, one job leaves, another arrives, one machine becomes free."""
    rng = np.random.default_rng(seed)
    times, kinds, release = given
    gone = int(rng.integers(len(times)))
    newcomer = rng.lognormal(np.log(MEAN_TIME), 1.0) * rng.uniform(1.0, 8.0, (1, TYPES))
    names = np.append(np.delete(np.arange(len(times)), gone), len(times))
    later = np.maximum(release, 60.0)
    later[rng.integers(len(release))] = 60.0
    return (np.vstack((np.delete(times, gone, axis=0), newcomer)), kinds, later), names


def by_scipy(given: Instance, positions: int) -> float:
    """Every slot up to a position as a column, which is how the original writes the problem down."""
    times, kinds, release = given
    cost = release + np.arange(1, positions + 1)[:, None, None] * times[:, kinds]
    cost = cost.transpose(1, 0, 2).reshape(len(times), -1)
    rows, columns = linear_sum_assignment(cost)
    return float(cost[rows, columns].sum())


def solve(given: Instance, names: Ints | None = None, state: State | None = None) -> tuple[Matching, State]:
    """Match the jobs; without names they are numbered."""
    times, kinds, release = given
    ticks, until = to_ticks(times, release)
    found = match(ticks, kinds, until, np.ones(len(kinds), dtype=bool), np.arange(len(times)) if names is None else names, state)
    assert found is not None
    return found


def median_ms(act: Callable[[int], object], repeats: int) -> float:
    """Median CPU time of calls that are told their number."""
    taken = []
    for number in range(repeats):
        begin = time.process_time()
        act(number)
        taken.append(1e3 * (time.process_time() - begin))
    return statistics.median(taken)


def measure(jobs: int, machines: int, repeats: int) -> tuple[float, float, int, int]:
    """Milliseconds carried over and from nothing, repairs in the median step, deepest position."""
    given = instance(jobs, machines, seed=1)
    found, state = solve(given)
    events = [changed(given, seed) for seed in range(repeats)]
    carried = median_ms(lambda i: solve(*events[i], state), repeats)
    fresh = median_ms(lambda i: solve(events[i][0]), min(repeats, 5))
    repairs = sorted(solve(event, names, state)[0].repairs for event, names in events)
    return carried, fresh, repairs[len(repairs) // 2], int(found.position.max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--machines", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=15)
    given = parser.parse_args()
    solve(instance(4, 8, seed=0))
    print("compiled; measuring", file=sys.stderr)

    carried, fresh, repairs, deepest = measure(given.jobs, given.machines, given.repeats)
    case = instance(given.jobs, given.machines, seed=1)
    scipy_ms = median_ms(lambda _: by_scipy(case, deepest + 1), 3)
    print(f"{given.jobs} jobs, {given.machines} machines of {TYPES} types, positions to {deepest}")
    print(f"{'solver':<28}{'ms':>10}{'ratio':>10}")
    print(f"{'SciPy, slots to that depth':<28}{scipy_ms:>10.1f}{1.0:>10.1f}")
    print(f"{'from nothing':<28}{fresh:>10.2f}{scipy_ms / fresh:>10.1f}")
    print(f"{'carried over':<28}{carried:>10.2f}{scipy_ms / carried:>10.1f}   ({repairs} repairs)")

    print()
    print(f"{'jobs':>6}{'machines':>10}{'depth':>7}{'carried over ms':>17}{'repairs':>9}{'from nothing ms':>17}")
    for machines in (given.machines, 40):
        for jobs in (10, 30, 100, 300, 1000):
            carried, fresh, repairs, deepest = measure(jobs, machines, given.repeats)
            print(f"{jobs:>6}{machines:>10}{deepest:>7}{carried:>17.2f}{repairs:>9}{fresh:>17.2f}")


if __name__ == "__main__":
    main()
