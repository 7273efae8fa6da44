"""Total completion time by trying everything: the answer that a matching must reach."""

from __future__ import annotations

from itertools import product

import numpy as np

from gantline.core.arrays import Floats


def least_total(times: Floats, machine_type: list[int], release: Floats) -> float:
    """Try every assignment of jobs to machines; on each machine the shortest job goes first."""
    best = np.inf
    for choice in product(range(len(release)), repeat=len(times)):
        total = 0.0
        for machine, free in enumerate(release):
            clock = free
            mine = sorted(times[j, machine_type[machine]] for j, chosen in enumerate(choice) if chosen == machine)
            for time in mine:
                clock += time
                total += clock
        best = min(best, total)
    return best


def first_of_the_best(times: Floats, machine_type: list[int], release: Floats) -> list[tuple[int, int]]:
    """Of all least-cost placements in (type, position) classes, the one that AlloX's tie rule names.

    Jobs choose in order of their rows: the highest position from the end, then the lowest type.
    """
    jobs, types = times.shape
    by_type = [sorted(float(r) for r, t in zip(release, machine_type) if t == kind) for kind in range(types)]
    classes = [(kind, k) for k in range(jobs, 0, -1) for kind in range(types) if by_type[kind]]
    best, chosen = np.inf, None
    for placement in product(classes, repeat=jobs):
        total = sum(k * times[j, kind] for j, (kind, k) in enumerate(placement))
        for kind, k in set(placement):
            count = placement.count((kind, k))
            total += sum(by_type[kind][:count]) if count <= len(by_type[kind]) else np.inf
        if total < best:  # placements come in the order of the rule, so the first of the best is the one
            best, chosen = total, placement
    assert chosen is not None
    return list(chosen)
