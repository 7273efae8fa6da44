"""Grants with several roles (parameter servers and workers, base and extra workers): each worker is placed, or none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.beside import SLACK, amounts_beside
from gantline.core.columns import FREE, HOST_RESOURCES, Device, Node
from gantline.core.grant import Worker
from gantline.core.plan import Part
from gantline.core.tables import Tables
from gantline.engine.holdings import NOTHING, Beside, Side, added

Kept = dict[tuple[str, int], Worker]  # by role and number within the role


def kept_workers(before: Sequence[Worker], parts: Sequence[Part]) -> Kept:
    """Workers that stay in place when a grant changes: the first ones of each role, unless the plan puts them elsewhere."""
    kept: Kept = {}
    for part in parts:
        alike = [w for w in before if (w.role, len(w.devices), *amounts_beside(w)) == (part.role, part.gpus, *amounts_beside(part))]
        for number, worker in enumerate(alike[: part.count]):
            there = number >= len(part.nodes) or part.nodes[number] == worker.node
            if there and (not part.devices or worker.devices == _exact(part, number)):
                kept[part.role, number] = worker
    return kept


def place_parts(tables: Tables, parts: Sequence[Part], kept: Kept) -> tuple[Worker, ...] | None:
    """A place for every worker, the kept ones where they are; None: at least one worker has no place.

    What the kept ones hold is still in the tables; the others share out what is free.
    """
    t = tables
    left = t.NF[:HOST_RESOURCES].copy()
    free = {int(d) for d in np.flatnonzero(t.D[Device.HOLDER] == FREE)}
    placed: Kept = {}
    for part in sorted(parts, key=lambda part: part.gpus == 0):  # parts that need devices come first: the others fit in more places
        for number in range(part.count):
            worker = kept.get((part.role, number))
            if worker is None:
                worker = _place(t, part, number, free, left)
                if worker is None:
                    return None
                free -= set(worker.devices)
                left[:, worker.node] -= amounts_beside(part)
            placed[part.role, number] = worker
    return tuple(placed[part.role, number] for part in parts for number in range(part.count))


def _exact(part: Part, number: int) -> tuple[int, ...]:
    return tuple(part.devices[number * part.gpus : (number + 1) * part.gpus])


def _place(t: Tables, part: Part, number: int, free: set[int], left: Floats) -> Worker | None:
    """One worker: where the plan says, else on the first node with room."""
    exact = _exact(part, number)
    nodes = [part.nodes[number]] if number < len(part.nodes) else list(range(t.NI.shape[1]))
    for node in nodes:
        if t.NI[Node.UP, node] == 0 or t.NI[Node.TYPE, node] != part.type:
            continue
        first, size = int(t.NI[Node.FIRST, node]), int(t.NI[Node.GPUS, node])
        mine = exact if part.devices else tuple(d for d in range(first, first + size) if d in free)[: part.gpus]
        here = len(mine) == part.gpus and all(d in free and first <= d < first + size for d in mine)
        if here and (left[:, node] + SLACK >= amounts_beside(part)).all():
            return Worker(part.role, node, tuple(mine), *amounts_beside(part))
    return None


def side_of(workers: Sequence[Worker]) -> Side:
    """What the workers need per node beside devices."""
    found: dict[int, Beside] = {}
    for worker in workers:
        found[worker.node] = added(found.get(worker.node, NOTHING), amounts_beside(worker))
    return tuple((node, *amounts) for node, amounts in found.items())
