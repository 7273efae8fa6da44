"""What a Gavel policy answers: the share of time each job (and each pair) should spend on each device type."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.systems.gavel.policies.instance import Instance

_LISTED = 5  # jobs named in a remark


@dataclass(frozen=True, slots=True)
class Allocation:
    """Shares of time: X of the paper, with the value of the objective and how it was reached."""

    share: Floats  # [m, k]
    paired: Floats  # [p, k]; empty without space sharing
    objective: float = float("nan")
    status: str = "optimal"  # "optimal", or a sentence that says which fallback was taken and why
    iterations: int = 0
    missing: tuple[Hashable, ...] = ()  # jobs that will miss their deadline under these shares


def remarks(status: str, missing: Sequence[str], before: Sequence[str]) -> tuple[str, ...]:
    """What people should know of an answer: a fallback, and deadlines given up that were not given up before."""
    said = () if status == "optimal" else (status,)
    if not missing or tuple(missing) == tuple(before):
        return said
    more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
    return (*said, f"deadlines that cannot be met are given up: {', '.join(missing[:_LISTED])}{more}")


def effective_throughput(instance: Instance, allocation: Allocation) -> Floats:
    """Steps per second of every job, averaged over time (section 3.1), alone and in pairs."""
    total = (instance.throughput * allocation.share).sum(axis=1)
    if instance.pairs is not None and len(instance.pairs):
        gained = (instance.pairs.throughput * allocation.paired[:, None, :]).sum(axis=2)
        np.add.at(total, instance.pairs.members, gained)
    return np.asarray(total)


def time_used(instance: Instance, allocation: Allocation) -> Floats:
    """Share of time in which each job runs at all."""
    used = allocation.share.sum(axis=1)
    if instance.pairs is not None and len(instance.pairs):
        both = allocation.paired.sum(axis=1)
        np.add.at(used, instance.pairs.members, both[:, None])
    return np.asarray(used)


def devices_used(instance: Instance, allocation: Allocation) -> Floats:
    """Devices of each type that the shares keep busy; a pair uses its devices once."""
    used = instance.scale @ allocation.share
    if instance.pairs is not None and len(instance.pairs):
        used = used + instance.scale[instance.pairs.members[:, 0]] @ allocation.paired
    return np.asarray(used)
