"""CPUs, memory and storage bandwidth of nodes: which of them keeps a job waiting although devices are free, and which jobs can never have
what they ask for.

Commits look for places, and know that there is none. What a place lacks is found here, for rows that wait although enough devices are free.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import HOST_RESOURCE_NAMES, HOST_RESOURCES, Node
from gantline.core.columns import Option as OptionColumn
from gantline.core.errors import RefusedError
from gantline.core.host_resources import amounts_beside
from gantline.core.options import Option
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason, sentence
from gantline.core.tables import Tables

_SLACK = 1e-9
UNITS = ("CPUs", "GB of memory", "MB/s of storage")
LACKING = (Reason.CPUS, Reason.MEMORY, Reason.STORAGE)  # in the order of the columns


def name_shortages(t: Tables, rows: Ints) -> None:
    """Name what is taken, for those of these rows that the placement is said to keep waiting."""
    jobs = t.jobs
    rows = rows[(jobs.phase[rows] == PENDING) & (jobs.reason[rows] == int(Reason.FRAGMENTED))]
    if not len(rows):
        return
    asks = t.options.F[OptionColumn.CPUS : OptionColumn.CPUS + HOST_RESOURCES][:, jobs.option_first[rows]].any(axis=0)
    for row in rows[asks].tolist():
        if (reason := _lacking(t, int(jobs.option_first[row]))) is not None:
            jobs.reason[row] = int(reason)


def words(t: Tables, row: int) -> str:
    """What is taken, with how much the job asks for and the most that a node with free devices has."""
    reason, option = Reason(int(t.jobs.reason[row])), int(t.jobs.option_first[row])
    k = LACKING.index(reason)
    free, unit = np.where(_able(t, option), t.NF[Node.CPUS + k], -np.inf), UNITS[k]
    node, each = t.cluster.nodes[int(np.argmax(free))], float(t.options.F[OptionColumn.CPUS + k, option])
    beside = " beside each device" if t.options.gpus[option] else ""
    has = f"{node.name} has {max(float(free.max()), 0.0):g} of {getattr(node, HOST_RESOURCE_NAMES[k]):g} free"
    return f"{sentence(reason)}: it asks for {each:g} {unit}{beside}, and {has}"


def _able(t: Tables, option: int) -> Bools:
    """Nodes of the option's type that are up and have a free device, where it asks for one."""
    able = (t.nodes.up == 1) & (t.nodes.type == t.options.type[option])
    return np.asarray(able & (t.nodes.free > 0) if t.options.gpus[option] else able)


def _lacking(t: Tables, option: int) -> Reason | None:
    """What is short on the nodes that have free devices; None: nothing, but that these are not together."""
    gpus, nodes = int(t.options.gpus[option]), _able(t, option)
    free = t.nodes.free[nodes] if gpus else np.ones(int(nodes.sum()), dtype=np.int64)  # without devices, a node has room or has not
    need = max(gpus, 1)
    for k, reason in enumerate(LACKING):
        each = float(t.options.F[OptionColumn.CPUS + k, option])
        if each <= 0.0:
            continue
        room = np.minimum(free, np.floor((t.NF[Node.CPUS + k][nodes] + _SLACK) / each))
        together = free.max(initial=0) >= need > room.max(initial=0)
        if room.sum() < need <= free.sum() or together:
            return reason
    return None


# CPUs, memory and storage bandwidth that a job asks for beside its devices: whether any of its options can ever be
# satisfied here.


def check_side_demands(cluster: Cluster, job: str, options: Sequence[Option]) -> None:
    """Refuse a job without an option that fits what a node has beside devices: it would wait, and block others, for ever."""
    short = [_shortage(cluster, option) for option in options]
    if short and all(short):
        raise RefusedError(f"job '{job}' {short[0]}", where="resources", fix="ask for less, or leave it out")


def options_with_memory(cluster: Cluster, job: str, options: list[Option], need: float) -> list[Option]:
    """The options on devices that have the memory that the job needs on each; it is refused where there is none."""
    has = cluster.device_memory
    found = [one for one in options if not one.gpus or has[one.type] == 0.0 or need <= has[one.type] + _SLACK]
    if options and not found:
        largest = max(options, key=lambda one: has[one.type]).type
        what = f"job '{job}' needs {need:g} GB of device memory, and {cluster.types[largest]} has {has[largest]:g}"
        raise RefusedError(what, where="metrics.device_memory", fix="ask for a type with larger devices, or need less")
    return found


def _shortage(cluster: Cluster, option: Option) -> str:
    """What is missing for an option; empty: nothing."""
    nodes = [node for node in cluster.nodes if node.type == cluster.types[option.type]]
    for what, unit, each in zip(HOST_RESOURCE_NAMES, UNITS, amounts_beside(option)):
        has = [float(getattr(node, what)) for node in nodes]
        whole = each * max(option.gpus, 1)
        if each > max(has, default=0.0) + _SLACK or whole > sum(has) + _SLACK:
            return f"asks for {whole:g} {unit}, and {cluster.types[option.type]} has {sum(has):g}"
    return ""
