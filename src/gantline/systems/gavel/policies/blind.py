"""What a heterogeneity-agnostic policy sees: the same question with the differences between types hidden.

The paper's baselines do not know how fast a job is where. Whether it can run there at all is not speed, so a throughput
of 0 stays 0; the artifact forgets that too (``keep_zeros=False``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, near
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.shares import proportional_throughput


def unit_speed(instance: Instance, *, keep_zeros: bool = True) -> Instance:
    """Every type is as good as any other: throughput 1 (least attained service counts time only)."""
    return _with_speed(instance, np.ones(len(instance)), keep_zeros)


def mean_speed(instance: Instance) -> Instance:
    """Every type has the job's mean speed on this cluster: what one knows of a job without knowing where it ran."""
    return _with_speed(instance, proportional_throughput(instance), True)


def speed_of(instance: Instance, type: str) -> Instance:
    """Every type has the speed of one: the artifact's agnostic baselines peek at the V100's (its issue 248)."""
    if type not in instance.types:
        raise NotFoundError(f"no device type '{type}' in the cluster", fix=near(type, instance.types))
    return _with_speed(instance, instance.throughput[:, instance.types.index(type)], False)


def _with_speed(instance: Instance, speed: Floats, keep_zeros: bool) -> Instance:
    seen = np.repeat(speed[:, None], len(instance.types), axis=1)
    if keep_zeros:
        seen = np.where(instance.throughput > 0, seen, 0.0)
    return replace(instance, throughput=seen, pairs=None)
