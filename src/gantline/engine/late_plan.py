"""A plan that comes late: what is left of it for the jobs that are still there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools
from gantline.core.plan import Assignments, Plan


def plan_for_those_there(plan: Plan, there: Bools) -> Plan:
    """The plan without the jobs of its snapshot that are gone; jobs are counted among those that are there."""
    place = np.cumsum(there) - 1
    if plan.ranking is not None:
        plan = replace(plan, ranking=replace(plan.ranking, key=plan.ranking.key[there]))
    elif plan.assignments is not None:
        kept = [replace(item, job=int(place[item.job])) for item in plan.assignments if there[item.job]]
        plan = replace(plan, assignments=Assignments.of(kept))
    refusals = tuple(replace(one, job=int(place[one.job])) for one in plan.refusals if there[one.job])
    standing = tuple(r if r.job < 0 else replace(r, job=int(place[r.job])) for r in plan.reservations if r.job < 0 or there[r.job])
    return replace(plan, refusals=refusals, reservations=standing)
