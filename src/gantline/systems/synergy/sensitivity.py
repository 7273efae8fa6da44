"""The model behind `--performance sensitivity --profiles DIR`: profiles in Synergy's layout for the servers of a cluster."""

from __future__ import annotations

import math

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, UsageError
from gantline.models.sensitivity import PerGpu, Sensitivity
from gantline.systems.synergy.profiles import SynergyProfiles
from gantline.traces.trace import Trace

_WHERE = "--performance sensitivity"


def make_model(jobs: Trace, cluster: Cluster, profiles: object = None) -> Sensitivity:
    """The model of a run; every node with GPUs must say how many CPUs and how much memory it has."""
    if not isinstance(profiles, SynergyProfiles):
        raise UsageError("no profiles are given", where=_WHERE, fix="give --profiles DIR")
    share: dict[int, PerGpu] = {}
    for node in cluster.nodes:
        if not node.gpus:
            continue
        if not node.cpus or not node.memory:
            what = f"node '{node.name}' does not say how many CPUs and how much memory it has"
            raise RefusedError(what, where=_WHERE, fix="use a cluster such as 4x8/24c/500g")
        each = (node.cpus / node.gpus, node.memory / node.gpus, node.storage / node.gpus)
        if share.setdefault(cluster.types.index(node.type), each) != each:
            what = f"nodes of type '{node.type}' differ in CPUs, memory or storage per GPU"
            raise RefusedError(what, where=_WHERE, fix="give them types of their own")
    return Sensitivity({kind: profiles.on(each) for kind, each in share.items()}, share, _asked(jobs))


def _asked(jobs: Trace) -> dict[str, PerGpu]:
    """What the trace says that jobs ask for, per GPU."""
    frame = jobs.frame
    none = [math.nan] * len(frame)
    amounts = [frame[name].to_list() if name in frame.columns else none for name in ("cpus", "memory", "storage")]
    rows = zip(frame["job"].to_list(), frame["gpus"].to_list(), zip(*amounts))
    return {job: tuple((amount or math.nan) / gpus for amount in said) for job, gpus, said in rows if gpus}
