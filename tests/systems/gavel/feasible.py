"""Whether shares keep to the constraints."""

from __future__ import annotations

from gantline.systems.gavel.policies.allocation import Allocation, devices_used, time_used
from gantline.systems.gavel.policies.instance import Instance


def excess(instance: Instance, allocation: Allocation) -> float:
    """By how much the shares break a constraint of section 3.1; 0 for a feasible allocation."""
    if not len(instance):
        return 0.0
    worst = max(
        float((time_used(instance, allocation) - 1.0).max()),
        float((devices_used(instance, allocation) - instance.capacity).max()),
        float(-allocation.share.min()),
    )
    if allocation.paired.size:
        worst = max(worst, float(-allocation.paired.min()))
    return max(worst, 0.0)
