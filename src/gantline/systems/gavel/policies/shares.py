"""The two reference shares: what a job has without any optimisation, and what others are measured against.

*Proportional* gives every job the cluster's mix of types for all of its time; *isolated* gives each of m jobs the m-th
part of the cluster (Gavel, OSDI 2020, section 4.1 and 4.2: the normalisers of max-min and finish-time fairness).
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.instance import Instance


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
