"""Strategy-proof max-min fairness: Nash welfare with the partial-allocation discount (Gavel, OSDI 2020, appendix).

Shares maximise the product of throughputs (to the power of the weights); then each job gets only the part of its share
that the others' loss by its presence leaves it: ``prod over others of (with it / without it)``, to the power of one over
its weight. No job gains by lying about its throughputs (Cole, Gkatzelis, Goel: Mechanism Design for Fair Division, EC
2013). One convex problem per kind of job, and one for all.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats
from gantline.systems.gavel.policies.allocation import Allocation, effective_throughput
from gantline.systems.gavel.policies.central import maximise_welfare, throughput_of
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.interior import Point
from gantline.systems.gavel.policies.max_min_fairness import normaliser
from gantline.systems.gavel.policies.program import Program
from gantline.systems.gavel.policies.solving import DEFAULT, Solving, conclude, give_up


def strategy_proof(instance: Instance, solving: Solving = DEFAULT) -> tuple[Allocation, Floats]:
    """Discounted shares and the discounts; the objective is the geometric mean of normalised throughputs before them."""
    full, program, point = nash_welfare(instance, solving)
    discount = np.ones(len(instance))
    if not point.solved:
        return full, discount
    kinds = program.kinds
    with_all = _logs(throughput_of(program, point.x)[kinds.of_job])
    for kind, job in enumerate(kinds.first):
        others = np.delete(np.arange(len(instance)), job)
        rest, part, alone = nash_welfare(instance.subset(others), solving)
        if not alone.solved:
            return give_up(instance, f"the discount of job '{instance.jobs[job]}' was not found: {rest.status}"), discount
        without = _logs(throughput_of(part, alone.x)[part.kinds.of_job])
        loss = instance.weight[others] @ (with_all[others] - without)
        discount[kinds.of_job == kind] = min(1.0, float(np.exp(loss / instance.weight[job])))
    scaled = Allocation(full.share * discount[:, None], full.paired, full.objective, full.status, full.iterations)
    return scaled, discount


def nash_welfare(instance: Instance, solving: Solving = DEFAULT) -> tuple[Allocation, Program, Point]:
    """Shares with the largest weighted product of throughputs."""
    instance = instance.without_pairs()
    kinds = solving.kinds(instance, instance.weight)
    program = solving.constraints(instance, kinds)
    weight = (kinds.count * instance.weight[kinds.first]).astype(np.float64)
    point = maximise_welfare(program, weight, budget=solving.budget)
    allocation = conclude(instance, program, point, float("nan"), solving)
    fits = program.reach[kinds.of_job] > 0
    normal = effective_throughput(instance, allocation)[fits] / normaliser(instance)[fits]
    mean = float(np.exp(np.log(normal).mean())) if fits.any() else 0.0
    return Allocation(allocation.share, allocation.paired, mean, allocation.status, allocation.iterations), program, point


def _logs(throughput: Floats) -> Floats:
    """Logarithms; a job that fits nowhere counts for nothing."""
    return np.asarray(np.log(np.where(throughput > 0, throughput, 1.0)))
