"""Refuses a specification at submission where this cluster or its policy cannot do what it asks for; nothing is ignored."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.core.slices import is_slice
from gantline.live.jobs import amounts
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_parts import Resources


def check_promises(spec: JobSpec, cluster: Cluster, policy: Policy) -> None:
    """Refuse requirements on racks, nodes and parts of devices that nothing here would enforce."""
    wanted = spec.resources
    if wanted.topology.within == "rack":
        fix = "within: node (devices of one type are on one node here), or cluster"
        raise RefusedError("racks are not known here", where="resources.topology.within", fix=fix)
    if wanted.topology.within == "gpu":
        _check_one_gpu(wanted, cluster)
    for way in wanted.ways:
        kind, low, _ = amounts.devices(way.accelerators or 1, "accelerators")
        _check_slices(spec, cluster, kind, low, way.cpus)
        there = max((sum(node.type == name for node in cluster.nodes) for name in ([kind] if kind else cluster.types)), default=0)
        if way.nodes[0] > max(there, 1):
            what = f"asks for {way.nodes[0]} nodes, and {kind or 'each type'} has {there} here"
            raise RefusedError(what, where="resources.nodes", fix="ask for its devices on one node")
        if way.nodes[0] > 1 and spec.on_one_node(low * way.nodes[0]):
            what = f"asks for {way.nodes[0]} nodes, and for fewer processes than devices or for one node, which puts it on one"
            raise RefusedError(
                what, where="resources.nodes", fix="processes: nodes (one on each) or gpus (one per device), within: cluster"
            )
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


def _check_one_gpu(wanted: Resources, cluster: Cluster) -> None:
    where = "resources.topology"
    if not any(is_slice(node.type) for node in cluster.nodes):
        raise RefusedError("no GPU is cut in slices here", where=where, fix="gantline up --devices h200/8, or within: node")
    if wanted.topology.mode == "preferred":
        fix = "mode: required; what all gangs prefer is the placement's to say: gantline up --placement consolidated:preferred"
        raise RefusedError("a job cannot prefer slices of one GPU", where=where, fix=fix)


def _check_slices(spec: JobSpec, cluster: Cluster, kind: str, low: int, cpus: float) -> None:
    """Refuse more slices of one GPU than any has, and more CPUs than the cores that their processes are bound to."""
    nodes = [node for node in cluster.nodes if is_slice(node.type) and node.type == kind]
    if not nodes:
        return
    most = max(node.gpus for node in nodes)
    if low > most and spec.on_one_gpu(kind, low):
        what = f"asks for {low} slices of one GPU, and '{kind}' has {most}"
        raise RefusedError(what, where="resources", fix="ask for fewer, or start a process on each (processes: gpus)")
    cores = max(node.cpus / node.gpus for node in nodes)
    if cpus > low * max(1.0, cores):
        what = f"asks for {cpus:g} CPUs, and {low} x '{kind}' is bound to {low * max(1.0, cores):g}"
        raise RefusedError(what, where="resources.cpus", fix="ask for more slices, or for fewer CPUs")
