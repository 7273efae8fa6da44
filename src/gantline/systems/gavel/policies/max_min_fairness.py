"""Max-min fairness, weighted least attained service (Gavel, OSDI 2020, section 4.1).

Maximise the smallest normalised throughput ``scale / (weight * proportional throughput) * throughput(X)``. Agnostic:
pass :func:`~gantline.systems.gavel.policies.blind.unit_speed` of the instance. Packed: pass an instance with pairs; gangs of
different sizes may be mixed (the constraint is written per job), only gangs of equal size share devices.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.shares import proportional_throughput
from gantline.systems.gavel.policies.solving import DEFAULT, Solving, best_level, conclude


def max_min_fairness(instance: Instance, solving: Solving = DEFAULT) -> Allocation:
    """Shares whose smallest normalised throughput is as large as possible; the objective is that throughput."""
    demand = normaliser(instance)
    kinds = solving.kinds(instance, demand)
    program = solving.constraints(instance, kinds)
    point = best_level(program, demand[kinds.first], None, solving)
    return conclude(instance, program, point, point.level, solving)


def normaliser(instance: Instance) -> Floats:
    """Throughput of each job that counts as one."""
    return np.asarray(instance.weight * proportional_throughput(instance) / instance.scale)
