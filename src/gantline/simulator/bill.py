"""What a run cost: device-hours of every type times their prices. A device that two jobs share is paid once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gantline.core import columns as c
from gantline.core.tables import Tables
from gantline.engine import log as g
from gantline.engine.log import Log
from gantline.performance.prices import prices_of


def bill(tables: Tables, log: Log, prices: Mapping[str, float], counted: Mapping[str, Any]) -> float:
    """Money for all devices held; a regime that counts device-seconds itself is believed."""
    names = [name for name in tables.cluster.types if tables.cluster.gpus_of(name)]
    seconds = counted.get("paid_device_seconds") or held_by_type(tables, log)
    return sum(seconds.get(name, 0.0) * price for name, price in zip(names, prices_of(names, prices))) / 3600.0


def held_by_type(tables: Tables, log: Log) -> dict[str, float]:
    """Device-seconds held of every type, shared ones once."""
    n = log.intervals
    start, end, count = log.LF[g.L_START, :n], log.LF[g.L_END, :n], log.LI[g.L_COUNT, :n].astype(np.int64)
    total = int(count.sum())
    gang = np.repeat(np.arange(n), count)
    place = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
    device = log.LD[log.LI[g.L_OFFSET, :n][gang] + place].astype(np.int64)
    order = np.lexsort((start[gang], device))
    device, begin, finish = device[order], start[gang][order], end[gang][order]
    seconds = np.zeros(tables.D.shape[1])
    covered = np.full(tables.D.shape[1], -np.inf)
    if log_has_overlap(device, begin, finish):
        for d, a, b in zip(device.tolist(), begin.tolist(), finish.tolist()):
            seconds[d] += max(0.0, b - max(a, covered[d]))
            covered[d] = max(covered[d], b)
    else:
        seconds += np.bincount(device, weights=finish - begin, minlength=len(seconds))
    kind = tables.NI[c.N_TYPE][tables.D[c.D_NODE]]
    by_type = np.bincount(kind, weights=seconds, minlength=len(tables.cluster.types))
    return dict(zip(tables.cluster.types, map(float, by_type)))


def log_has_overlap(device: Any, begin: Any, finish: Any) -> bool:
    """Whether two intervals of a device overlap."""
    same = device[1:] == device[:-1]
    return bool((begin[1:][same] < finish[:-1][same]).any())
