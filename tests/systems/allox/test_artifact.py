"""IRFsim's rules, one by one: the sort whose comparisons matter, the matching that would hang."""

from __future__ import annotations

import hashlib
from itertools import product

import numpy as np
import pytest
from tests.jobs import job_row

from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError
from gantline.simulator.simulate import simulate
from gantline.systems.allox.imitation.irfsim import IrfsimTask, User
from gantline.systems.allox.imitation.matching import choose_jobs
from gantline.systems.allox.imitation.methods import ContradictoryError, java_sort

AGE = 500.0


def test_pairs_are_sorted_by_the_comparisons_that_java_makes() -> None:
    """Differences are cut to whole seconds, which is not transitive: the order, and whether Java gives up, depend on what it compares."""
    told = []
    for size, spread in product((0, 1, 2, 15, 16, 17, 33, 64, 150, 400), (3.0, 40.0, 4000.0)):
        rng = np.random.default_rng(size)
        arrival, reported = np.sort(rng.uniform(0.0, 1000.0, size)), rng.uniform(1.0, 1.0 + spread, (size, 2))
        reported[: size // 3].sort(axis=0)

        def before(a: int, b: int, arrival: Floats = arrival, reported: Floats = reported) -> bool:
            old, other = 1200.0 - arrival[a // 2] >= AGE, 1200.0 - arrival[b // 2] >= AGE
            return bool(old) if old != other else int(reported[a // 2, a % 2] - reported[b // 2, b % 2]) < 0

        order = list(range(2 * size))
        try:
            java_sort(order, before)
        except ContradictoryError:
            order = []
        told.append(order)
    assert [len(order) for order in told].count(0) == 7
    assert hashlib.blake2b(repr(told).encode(), digest_size=6).hexdigest() == "82d6b4184971"


def test_a_job_that_lacks_memory_is_refused_where_the_original_hangs() -> None:
    large = job_row("large", 1, 5.0, options="gpu:1/0/90=5|cpu:0/20/1=900")
    other = job_row("other", 1, 9.0, options="gpu:1/0/90=9|cpu:0/20/1=900")
    with pytest.raises(RefusedError, match="lacks memory, and the original would try it for ever"):
        simulate([large, other], "gpu:2x1/0c/64g,cpu:1x0/20c/1g", "allox", regime="irfsim-known")


def test_the_size_limit_takes_the_shortest_on_either_device() -> None:
    count = 80
    waiting = [
        IrfsimTask(row, 0, 0.0, row, [1.0, 1.0], [1.0, 1.0], times, times)
        for row in range(count)
        if (times := [float(count - row), 1.0 + row])
    ]
    chosen = choose_jobs([User(1.0, waiting)])
    assert sorted(job.row for job in chosen) == [*range(25), *range(count - 25, count)]
