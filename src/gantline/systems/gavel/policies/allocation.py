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


# The two reference shares: what a job has without any optimisation, and what others are measured against.
#
# *Proportional* gives every job the cluster's mix of types for all of its time; *isolated* gives each of m jobs the m-th
# part of the cluster (Gavel, OSDI 2020, section 4.1 and 4.2: the normalisers of max-min and finish-time fairness).


def proportional(instance: Instance) -> Allocation:
    """Every job gets the mix of the cluster, ignoring gang sizes and how many jobs there are."""
    mix = instance.capacity / max(float(instance.capacity.sum()), 1e-300)
    return Allocation(np.tile(mix, (len(instance), 1)), no_pairs(instance))


def isolated(instance: Instance) -> Allocation:
    """Every job gets the m-th part of each type, divided among its gang, and never more than all of its time."""
    return Allocation(split(instance.capacity, instance.scale, len(instance)), no_pairs(instance))


def split(capacity: Floats, scale: Floats, parts: int) -> Floats:
    """Shares of rows with these gang sizes when the cluster is cut into equal parts."""
    share = (capacity / max(parts, 1)) / scale[:, None]
    return np.asarray(share / np.maximum(share.sum(axis=1, keepdims=True), 1.0))


def proportional_throughput(instance: Instance) -> Floats:
    """Steps per second under proportional shares: the normaliser of max-min fairness."""
    return np.asarray((instance.throughput * proportional(instance).share).sum(axis=1))


def isolated_throughput(instance: Instance) -> Floats:
    """Steps per second under isolated shares: the normaliser of finish-time fairness."""
    return np.asarray((instance.throughput * isolated(instance).share).sum(axis=1))


def no_pairs(instance: Instance) -> Floats:
    """Shares of pairs when no jobs share devices."""
    return np.zeros((0 if instance.pairs is None else len(instance.pairs), len(instance.types)))
