"""A window of the past as lines: means over equal intervals of what was busy, ran and waited, and of the shares of queues and users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.live.service.past.occupancy import OTHERS, JobName, Occupancy

_MOST = 20  # queues, and users, with their own line: those with the most device time
REST = "(others)"


def series_of_window(
    past: Occupancy, begin: float, end: float, width: int, weights: Mapping[str, float], seen: Callable[[JobName], bool]
) -> dict[str, Any]:
    """`weights` of queues; all users have equal weight. `seen`: jobs of which the user and the queue may be named."""
    edges = np.linspace(begin, end, width + 1)
    sizes = np.diff(past.first).astype(np.float64)
    stays, waits = (past.start, past.stop), (past.wait_start, past.wait_stop)
    requested = np.array([float(one.gpus) for one in past.jobs] or [0.0])[past.wait_job]
    one_each = (np.ones(len(past.start)), np.ones(len(past.wait_start)))
    held, due = {}, {}
    for kind in ("queue", "user"):
        named = [getattr(one, kind) if seen(one) else OTHERS for one in past.jobs]
        holds, wants = (_by_group(edges, named, *part) for part in ((past.job, *stays, sizes), (past.wait_job, *waits, requested)))
        held[kind], due[kind] = _shares(holds, wants, past.device_count, weights if kind == "queue" else {})
    return {
        "from": begin, "to": end, "time": edges.tolist(), "devices": past.device_count, "busy": _rounded(means(edges, *stays, sizes)),
        "running": _rounded(means(edges, *stays, one_each[0])), "waiting": _rounded(means(edges, *waits, one_each[1])),
        "held": held, "due": due,
    }  # fmt: skip


def means(edges: Floats, start: Floats, stop: Floats, weight: Floats) -> Floats:
    """The mean weight of intervals that hold, over each piece between two edges."""
    inside = (start < edges[-1]) & (stop > edges[0])
    begins, ends = np.maximum(start[inside], edges[0]), np.minimum(stop[inside], edges[-1])
    area = _ramp(edges, begins, weight[inside]) - _ramp(edges, ends, weight[inside])
    return np.maximum(np.diff(area) / np.diff(edges), 0.0)


def _ramp(edges: Floats, points: Floats, weight: Floats) -> Floats:
    """What weights that set in at these points have added up to at each edge."""
    order = np.argsort(points)
    since = points[order] - edges[0]
    total, moment = (np.append(0.0, np.cumsum(part)) for part in (weight[order], weight[order] * since))
    count = np.searchsorted(since, edges - edges[0], side="right")
    ramp: Floats = (edges - edges[0]) * total[count] - moment[count]
    return ramp


def _by_group(edges: Floats, named: list[str], job: Ints, start: Floats, stop: Floats, weight: Floats) -> dict[str, Floats]:
    if not named or not job.size:
        return {}
    names, group = np.unique(np.array(named, dtype=object).astype(str), return_inverse=True)
    own = group[job]
    return {str(names[k]): means(edges, start[own == k], stop[own == k], weight[own == k]) for k in np.unique(own).tolist()}


def _shares(
    holds: Mapping[str, Floats], wants: Mapping[str, Floats], devices: int, weights: Mapping[str, float]
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """What each group held, and what it was due; small groups beyond the first ones are one."""
    none = np.zeros(len(next(iter((*holds.values(), *wants.values())), ())))
    names = sorted({*holds, *wants}, key=lambda name: (-float(holds.get(name, none).sum()), name))
    if not names:
        return {}, {}
    has = np.array([holds.get(name, none) for name in names]).reshape(len(names), -1)
    demand = has + np.array([wants.get(name, none) for name in names]).reshape(len(names), -1)
    due = fair_shares(demand, np.array([weights.get(name, 1.0) for name in names]), float(devices))
    if len(names) > _MOST:
        names = [*names[:_MOST], REST]
        has, due = (np.vstack([part[:_MOST], part[_MOST:].sum(axis=0)]) for part in (has, due))
    return {name: _rounded(has[k]) for k, name in enumerate(names)}, {name: _rounded(due[k]) for k, name in enumerate(names)}


def fair_shares(demand: Floats, weight: Floats, devices: float) -> Floats:
    """Max-min fair shares of the devices by weight, column by column: no group gets more than it asks for, others share the rest.

    Bertsekas and Gallager, Data Networks, 1992, section 6.5.2.
    """
    given = np.zeros(demand.shape)
    for _ in range(len(demand)):
        hungry = demand - given > 1e-9
        total = (hungry * weight[:, None]).sum(axis=0)
        rest = devices - given.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(total > 0, hungry * weight[:, None] * rest / total, 0.0)
        if not (part > 1e-9).any():
            break
        given = np.minimum(demand, given + part)
    return given


def _rounded(values: Floats) -> list[float]:
    return [round(value, 4) for value in values.tolist()]
