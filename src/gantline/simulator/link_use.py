"""How the links of a cluster were used in a run: how loaded each was and for how long too much, how long jobs communicated."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Job, Option
from gantline.core.tables import Tables
from gantline.core.traffic import Traffic
from gantline.engine.log import Interval, Log


def link_use(cluster: Cluster, log: Log, tables: Tables, close: float) -> dict[str, object]:
    """Entries of the summary of a run on a cluster that names links."""
    n = log.intervals
    row, count, offset = (log.LI[column, :n].astype(np.int64) for column in (Interval.ROW, Interval.COUNT, Interval.OFFSET))
    found: dict[str, object] = {}
    traffic = Traffic.read(tables.lent.metric, np.arange(tables.F.shape[1]))
    start, end = log.LF[Interval.START, :n], np.where(np.isnan(log.LF[Interval.END, :n]), close, log.LF[Interval.END, :n])
    if apart := cluster.routes.apart():
        found["nodes_apart"] = len(apart)
    steps: list[list[tuple[float, float]]] = [[] for _ in cluster.links]
    for k in np.flatnonzero(count > 1).tolist():
        for link in cluster.routes.crossed(tuple(log.LD[offset[k] : offset[k] + count[k]].tolist())):
            most = cluster.links[link].bandwidth
            mean = traffic.mean(int(row[k]), most) / most
            steps[link] += [(float(start[k]), mean), (float(end[k]), -mean)]
    whole = float(end.max() - start.min()) if n else 0.0
    found["links"] = [
        {"a": link.a, "b": link.b, "bandwidth": link.bandwidth} | _loads(steps[number], whole) for number, link in enumerate(cluster.links)
    ]
    found["communication_seconds"] = _communication(tables, traffic, row, log.LI[Interval.OPTION, :n].astype(np.int64), end - start)
    return found


def _loads(steps: list[tuple[float, float]], whole: float) -> dict[str, float]:
    """How many gangs crossed a link, its mean load over the run, and for how long the load was above one."""
    now, load, sum_of, over = 0.0, 0.0, 0.0, 0.0
    for time, change in sorted(steps, key=lambda step: (step[0], step[1])):
        sum_of += load * (time - now)
        over += (time - now) if load > 1.0 + 1e-9 else 0.0
        now, load = time, load + change
    return {"gangs": len(steps) // 2, "mean_load": sum_of / whole if whole > 0.0 else 0.0, "overload_seconds": over}


def _communication(tables: Tables, traffic: Traffic, row: Ints, option: Ints, seconds: Floats) -> float:
    """Seconds that jobs held devices beyond what they computed: communication, waiting for links included."""
    held = np.bincount(row, weights=seconds, minlength=tables.F.shape[1])
    rate = np.ones(tables.F.shape[1])
    rate[row] = np.maximum(tables.options.F[Option.RATE][option], 1e-300)
    computes = np.divide(traffic.iteration - traffic.network, traffic.iteration, out=np.ones(len(held)), where=traffic.known)
    return float(np.maximum(held - tables.F[Job.DONE] / rate * computes, 0.0)[traffic.known].sum())
