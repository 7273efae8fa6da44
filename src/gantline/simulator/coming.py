"""Newcomers of many futures as one table, for the loop that counts devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.inputs import Input, Submit
from gantline.engine.drivers.futures.places import Newcomer

_PLAIN = frozenset({"id", "gpus", "estimate", "priority", "user", "queue", "model"})  # what leaves a job one way to run


class Coming(NamedTuple):
    """Newcomers by (future, what, number); those that are missing arrive never. `sizes` are the gang sizes that occur."""

    table: Floats
    sizes: tuple[int, ...]


def coming_rows(futures: Sequence[list[Input]]) -> Coming | None:
    """The table; None: some input is more than a job with devices and an amount of work."""
    most = max((len(each) for each in futures), default=0)
    table = np.zeros((len(futures), len(Newcomer), most))
    table[:, Newcomer.ARRIVAL] = np.inf
    table[:, Newcomer.NEED] = 1.0
    sizes: set[int] = {1} if most else set()
    for number, each in enumerate(futures):
        for place, one in enumerate(sorted(each, key=lambda value: value.time)):
            if not isinstance(one, Submit) or one.work is None or one.ids or not one.job.keys() <= _PLAIN:
                return None
            need = int(one.job.get("gpus", 1))
            estimates = float(one.job.get("estimate", one.work)), float(one.job.get("priority", 0.0))
            table[number, :, place] = (one.time, need, one.work, *estimates)
            sizes.add(need)
    return Coming(table, tuple(sorted(sizes)))
