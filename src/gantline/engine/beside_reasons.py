"""Which other resource of a node keeps a job waiting: enough devices are free, but not with CPUs, memory or storage beside them.

Commits look for places, and know that there is none. What a place lacks is found here, for rows that wait although enough devices are free.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import HOST_RESOURCE_NAMES, HOST_RESOURCES, Job, Node, Option
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason, sentence
from gantline.core.tables import Tables

_SLACK = 1e-9
UNITS = ("CPUs", "GB of memory", "MB/s of storage")
LACKING = (Reason.CPUS, Reason.MEMORY, Reason.STORAGE)  # in the order of the columns


def name_shortages(t: Tables, rows: Ints) -> None:
    """Name what is taken, for those of these rows that the placement is said to keep waiting."""
    I = t.I
    rows = rows[(I[Job.PHASE][rows] == PENDING) & (I[Job.REASON][rows] == int(Reason.FRAGMENTED))]
    if not len(rows):
        return
    asks = t.options.F[Option.CPUS : Option.CPUS + HOST_RESOURCES][:, I[Job.OPTION_FIRST][rows]].any(axis=0)
    for row in rows[asks].tolist():
        if (reason := _lacking(t, int(I[Job.OPTION_FIRST, row]))) is not None:
            I[Job.REASON, row] = int(reason)


def words(t: Tables, row: int) -> str:
    """What is taken, with how much the job asks for and the most that a node with free devices has."""
    reason, option = Reason(int(t.I[Job.REASON, row])), int(t.I[Job.OPTION_FIRST, row])
    k = LACKING.index(reason)
    free, unit = np.where(_able(t, option), t.NF[Node.CPUS + k], -np.inf), UNITS[k]
    node, each = t.cluster.nodes[int(np.argmax(free))], float(t.options.F[Option.CPUS + k, option])
    beside = " beside each device" if t.options.I[Option.GPUS, option] else ""
    has = f"{node.name} has {max(float(free.max()), 0.0):g} of {getattr(node, HOST_RESOURCE_NAMES[k]):g} free"
    return f"{sentence(reason)}: it asks for {each:g} {unit}{beside}, and {has}"


def _able(t: Tables, option: int) -> Bools:
    """Nodes of the option's type that are up and have a free device, where it asks for one."""
    able = (t.NI[Node.UP] == 1) & (t.NI[Node.TYPE] == t.options.I[Option.TYPE, option])
    return np.asarray(able & (t.NI[Node.FREE] > 0) if t.options.I[Option.GPUS, option] else able)


def _lacking(t: Tables, option: int) -> Reason | None:
    """What is short on the nodes that have free devices; None: nothing, but that these are not together."""
    gpus, nodes = int(t.options.I[Option.GPUS, option]), _able(t, option)
    free = t.NI[Node.FREE][nodes] if gpus else np.ones(int(nodes.sum()), dtype=np.int64)  # without devices, a node has room or has not
    need = max(gpus, 1)
    for k, reason in enumerate(LACKING):
        each = float(t.options.F[Option.CPUS + k, option])
        if each <= 0.0:
            continue
        room = np.minimum(free, np.floor((t.NF[Node.CPUS + k][nodes] + _SLACK) / each))
        together = free.max(initial=0) >= need > room.max(initial=0)
        if room.sum() < need <= free.sum() or together:
            return reason
    return None
