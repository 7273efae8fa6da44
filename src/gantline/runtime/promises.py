"""Refuses a specification at submission where this cluster or its policy cannot do what it asks for; nothing is ignored."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.runtime import amounts
from gantline.runtime.spec import JobSpec


def check_promises(spec: JobSpec, cluster: Cluster, policy: Policy) -> None:
    """Refuse requirements on racks, nodes and parts of devices that nothing here would enforce."""
    wanted = spec.resources
    if wanted.topology.within == "rack":
        fix = "within: node (devices of one type are on one node here), or cluster"
        raise RefusedError("racks are not known here", where="resources.topology.within", fix=fix)
    for way in wanted.ways:
        kind = amounts.devices(way.accelerators or 1, "accelerators")[0]
        there = max((sum(node.type == name for node in cluster.nodes) for name in ([kind] if kind else cluster.types)), default=0)
        if way.nodes[0] > max(there, 1):
            what = f"asks for {way.nodes[0]} nodes, and {kind or 'each type'} has {there} here"
            raise RefusedError(what, where="resources.nodes", fix="ask for its devices on one node")
    if wanted.share.fraction == 1.0:
        return
    if spec.sizes != (1, 1) or (spec.elastic is not None and spec.elastic.max > 1):
        raise RefusedError(
            f"is a part of one device, and the job asks for up to {max(spec.sizes[1], spec.elastic.max if spec.elastic else 0)}",
            where="resources.share",
            fix="ask for one device, or leave share out",
        )
    if not policy.shares_devices:
        raise RefusedError(
            f"policy '{policy.name}' gives every job whole devices",
            where="resources.share",
            fix="gantline policy use sharing (--set order=NAME: in the order of another policy), or leave share out",
        )
