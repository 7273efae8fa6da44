"""Jobs whose gang must be on one node: a process cannot use devices of two.

Such a job (`ASKED_TOGETHER`) has options that span one node, and they do so whatever size a policy or a user makes of them. So
every placement rule, every plan and every rollout keeps to it, on either clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.options import Option
from gantline.core.slices import is_slice


def on_one_node(cluster: Cluster, job: str, options: Sequence[Option], most: int) -> list[Option]:
    """The options that one node can hold, each on one node; refused where there is none, or the job may grow beyond every node.

    A GPU that is cut in slices is a node of its own: what must be on one of those says so in its options.
    """
    room = {kind: max((node.gpus for node in cluster.nodes if node.type == kind), default=0) for kind in cluster.types}
    free = [one for one in options if not one.gpus or is_slice(cluster.types[one.type])]
    bound = [one for one in options if one not in free]
    found = [replace(one, nodes=1) for one in bound if one.gpus <= room[cluster.types[one.type]]]
    largest = max((room[cluster.types[one.type]] for one in bound), default=0)
    if bound and (not found or most > largest) and not free:
        need = max(most, min(one.gpus for one in bound))
        what = (
            f"job '{job}' has fewer processes than devices, or asks for one node: it can use no more than {largest} devices, and not {need}"
        )
        raise RefusedError(what, where="processes", fix="processes: gpus starts one for each device, processes: nodes one on each node")
    return [*found, *free]
