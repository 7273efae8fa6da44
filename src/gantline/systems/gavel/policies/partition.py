"""POP: split jobs and devices into parts, solve each part for itself, join the answers (POP, SOSP 2021; Gavel's notebooks).

Jobs of one kind are dealt out like cards, so that every part is a small copy of the whole; devices of each type are dealt
out likewise. A part is solved in a fraction of the time and the result is nearly as good as long as parts stay large.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.kinds import group
from gantline.systems.gavel.policies.shares import no_pairs

Policy = Callable[[Instance], Allocation]


def solve_in_parts(instance: Instance, policy: Policy, parts: int) -> Allocation:
    """The joined answer of a policy that is asked about each of the parts; pairs across parts get nothing."""
    if parts < 1:
        raise UsageError(f"{parts} parts", where="parts", fix="give 1 or more")
    share, paired = np.zeros((len(instance), len(instance.types))), no_pairs(instance)
    statuses: list[str] = []
    objectives: list[float] = []
    missing: list[Hashable] = []
    iterations = 0
    part_of = deal_jobs(instance, parts)
    for part, capacity in enumerate(deal_devices(instance.capacity, parts)):
        chosen = np.flatnonzero(part_of == part)
        if not len(chosen):
            continue
        answer = policy(instance.subset(chosen, capacity))
        share[chosen] = answer.share
        if instance.pairs is not None:
            paired[(part_of[instance.pairs.members] == part).all(axis=1)] = answer.paired
        objectives.append(answer.objective)
        missing += answer.missing
        iterations += answer.iterations
        if answer.status != "optimal":
            statuses.append(f"part {part}: {answer.status}")
    worst = min(objectives, default=float("nan"))
    return Allocation(share, paired, worst, "; ".join(statuses) or "optimal", iterations, tuple(missing))


def deal_jobs(instance: Instance, parts: int) -> Ints:
    """The part of every job: jobs of one kind go round the parts, large gangs first, so that demand is even."""
    _, kind = group(np.column_stack((instance.throughput, instance.scale)))
    order = np.lexsort((np.arange(len(instance)), kind, -instance.scale))
    part = np.empty(len(instance), dtype=np.int64)
    part[order] = np.arange(len(instance)) % parts
    return part


def deal_devices(capacity: Floats, parts: int) -> list[Floats]:
    """Whole devices for every part; what is left over goes round, starting where the previous type stopped."""
    dealt = np.tile(np.floor(capacity / parts), (parts, 1))
    turn = 0
    for j, left in enumerate(capacity - dealt.sum(axis=0)):
        while left > 0:
            dealt[turn % parts, j] += min(left, 1.0)
            left -= 1.0
            turn += 1
    return list(dealt)
