"""A trace, a cluster and profiles as Pollux' simulator sees them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.errors import TraceError, UsageError
from gantline.core.tables import Tables
from gantline.models.goodput.measured import Profiles
from gantline.systems.pollux.imitation.applications import PINNED, Applications
from gantline.systems.pollux.imitation.clock import F_COLUMNS, I_COLUMNS, Column, PolluxJobs
from gantline.traces.trace import Trace

_ROWS = 32  # of speeds per job, to begin with


@dataclass(frozen=True)
class Asked:
    """What jobs ask for, and what their application allows."""

    applications: Applications
    app: Ints
    devices: Ints
    batch: Floats
    pinned: Floats  # total batch of jobs that always get one device; 0: not pinned


def node_sizes(cluster: Cluster) -> tuple[str, Ints]:
    """The device type and the devices of each node; Pollux knows one type."""
    sizes = np.array([node.gpus for node in cluster.nodes], dtype=np.int64)
    kinds = {node.type for node in cluster.nodes if node.gpus}
    if len(kinds) != 1 or not sizes.all():
        raise UsageError(
            "Pollux' clusters have devices of one type on every node",
            where=f"cluster '{cluster}'",
            fix="write for example aws:16x4, or use --regime sia for several types",
        )
    return kinds.pop(), sizes


def read_asked(trace: Trace, profiles: Profiles, kind: str, sizes: Ints) -> Asked:
    """Applications, devices and batches of the jobs; a mistake names its line."""
    frame = trace.frame
    for column in ("app", "batch_size"):
        if column not in frame.columns or frame[column].null_count():
            row = int(frame[column].is_null().arg_true()[0]) if column in frame.columns else 0
            raise _fault(trace, row, column, "does not say its application and its batch", "import the workload again")
    names = frame["app"].to_list()
    for row, name in enumerate(names):
        if name not in profiles.applications:
            raise _fault(trace, row, "app", f"no profile of '{name}'", f"the profiles have {', '.join(sorted(profiles.applications))}")
    applications = Applications(profiles, names, kind, int(sizes.max()))
    app = np.array([applications.names.index(name) for name in names], dtype=np.int64)
    devices = frame["gpus"].to_numpy().astype(np.int64)
    batch = frame["batch_size"].cast(float).to_numpy().astype(np.float64)
    for row in range(len(names)):
        limits = applications.limits[app[row]]
        if limits.local_least > limits.most:
            what = f"no batch that fits: the least per device is {limits.local_least:g}, the largest in all {limits.most:g}"
            raise _fault(trace, row, "app", what, "check its profiles")
        if not batch[row] > 0.0:
            raise _fault(trace, row, "batch_size", f"a batch of {batch[row]:g}", "give the examples of a step")
        if devices[row] > limits.most:
            raise _fault(trace, row, "gpus", f"{devices[row]} devices for at most {limits.most:g} examples", "ask for fewer")
    return Asked(applications, app, devices, batch, np.array([PINNED.get(name, 0.0) for name in names]))


def make_jobs(tables: Tables, asked: Asked, learns: bool) -> PolluxJobs:
    """All jobs before anything happened. Those that adapt have no wanted batch, unless their application is pinned to one."""
    count = len(asked.app)
    F, I = np.zeros((F_COLUMNS, count)), np.zeros((I_COLUMNS, count), dtype=np.int64)
    F[Column.SUBMIT] = tables.F[Job.ARRIVAL]
    F[Column.FINISH] = np.nan
    F[Column.VARIANCE] = 1.0
    F[Column.WANTED] = asked.pinned if learns else asked.batch
    I[Column.APP], I[Column.RESTARTS] = asked.app, -1
    return PolluxJobs(F, I, np.zeros((count, 7)), np.zeros((count, _ROWS if learns else 1, 5)), learns, np.zeros(3))


def _fault(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}': {what}", file=trace.source, line=row + 2, field=field, fix=fix)
