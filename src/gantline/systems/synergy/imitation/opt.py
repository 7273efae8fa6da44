"""The round of `+opt`: the best cell for each job on all servers taken as one.

The original then spreads the cells over servers by a linear program without a goal, and lets jobs be on several servers by fractions. Such
an assignment always exists, and speeds do not depend on it; here GPUs are taken in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from gantline.core.errors import RefusedError
from gantline.systems.synergy.policies.mechanisms import Speeds, chosen_cells
from gantline.systems.synergy.policies.needs import Need, Vector
from gantline.systems.synergy.policies.servers import Servers


def opt(order: Sequence[Need], servers: Servers) -> Speeds:
    """The cells that together are fastest, each at least as fast as the proportional share."""
    chosen = chosen_cells(order, sum(servers.cpus), sum(servers.memory))
    if chosen is None:
        raise RefusedError("the jobs of a round cannot all be as fast as their share makes them", where="--set mechanism=opt")
    for job in order:
        servers.place(job, Vector(0.0, 0.0))
    return {job: chosen[job].speed for job in order}
