"""A window of the past as a picture of so many pixels: runs of equal pixels in each row, with the job that has most of each.

A zoom requests another window: the picture is drawn again, so that it is as sharp as the screen at any zoom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.lab.report.figures.gantt import draw_intervals
from gantline.live.service.occupancy import OTHERS, JobName, Occupancy

MOST_PIXELS = 2_000_000
_SHADES = 16  # of how busy a pixel is, where a row shows several devices


def gantt_of(past: Occupancy, begin: float, end: float, width: int, most_rows: int, seen: Callable[[JobName], bool]) -> dict[str, Any]:
    """The picture, and what the jobs in it are called."""
    count = max(past.device_count, 1)
    rows = min(count, most_rows)
    if rows * width > MOST_PIXELS:
        raise UsageError(f"{rows} rows of {width} pixels are too many", where="width", fix=f"at most {MOST_PIXELS:,} pixels in all")
    inside = np.flatnonzero((past.start < end) & (past.stop > begin))
    shown, code = np.unique(past.job[inside], return_inverse=True)
    lengths = past.first[inside + 1] - past.first[inside]
    first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    places = np.repeat(past.first[inside] - first[:-1], lengths) + np.arange(first[-1])
    numbers = np.arange(len(shown) or 1)
    palette = np.stack([numbers & 255, (numbers >> 8) & 255, (numbers >> 16) & 255], axis=1).astype(np.uint8)  # a colour is a number here
    pixels = draw_intervals(
        past.start[inside], past.stop[inside], first, past.devices[places], code.astype(np.int64), palette,
        begin=begin, end=end, device_count=count, width=width, most_rows=rows,
    ).astype(np.int64)  # fmt: skip
    job = pixels[..., 0] | (pixels[..., 1] << 8) | (pixels[..., 2] << 16)
    names = [name if seen(name := past.jobs[place]) else JobName(OTHERS, OTHERS, OTHERS, OTHERS) for place in shown.tolist()]
    return {
        "from": begin, "to": end, "width": width, "rows": _rows(past, rows), "spans": _spans(job, pixels[..., 3]),
        "jobs": {field: [getattr(one, field) for one in names] for field in ("id", "name", "user", "queue")},
    }  # fmt: skip


def _rows(past: Occupancy, rows: int) -> list[dict[str, Any]]:
    """The devices of each row: the first one, and how many there are."""
    names = [f"{name}:{k}" for name, size in past.nodes for k in range(size)] or [""]
    firsts = [-(-row * len(names) // rows) for row in range(rows + 1)]
    return [{"name": names[first], "count": after - first} for first, after in pairwise(firsts)]


def _spans(job: Ints, busy: Ints) -> dict[str, list[int]]:
    """Runs of pixels with the same job that are equally busy; idle ones are left out."""
    shade = -(-busy * _SHADES // 256)
    same = np.where(shade > 0, (job << 8) | shade, -1)
    edge = np.ones(same.shape, dtype=bool)
    edge[:, 1:] = same[:, 1:] != same[:, :-1]
    row, left = np.nonzero(edge)
    right = np.append(left[1:], 0)
    right[np.append(row[1:] != row[:-1], True)] = same.shape[1]
    value = same[row, left]
    kept = value >= 0
    found = {"row": row, "x0": left, "x1": right, "job": value >> 8, "busy": (value & 255) * 255 // _SHADES}
    return {name: column[kept].tolist() for name, column in found.items()}


# A window of the past as lines: means over equal intervals of what was busy, ran and waited, and of the shares of
# queues and users.

_MOST = 20  # queues, and users, with their own line: those with the most device time
REST = "(others)"


def series_of_window(
    past: Occupancy, begin: float, end: float, width: int, weights: Mapping[str, float], seen: Callable[[JobName], bool]
) -> dict[str, Any]:
    """`weights` of queues; all users have equal weight. `seen`: jobs of which the user and the queue may be named."""
    edges = np.linspace(begin, end, width + 1)
    sizes = np.diff(past.first).astype(np.float64)
    intervals, waits = (past.start, past.stop), (past.wait_start, past.wait_stop)
    requested = np.array([float(one.gpus) for one in past.jobs] or [0.0])[past.wait_job]
    one_each = (np.ones(len(past.start)), np.ones(len(past.wait_start)))
    held, due = {}, {}
    for kind in ("queue", "user"):
        named = [getattr(one, kind) if seen(one) else OTHERS for one in past.jobs]
        holds, wants = (_by_group(edges, named, *part) for part in ((past.job, *intervals, sizes), (past.wait_job, *waits, requested)))
        held[kind], due[kind] = _shares(holds, wants, past.device_count, weights if kind == "queue" else {})
    return {
        "from": begin, "to": end, "time": edges.tolist(), "devices": past.device_count, "busy": _rounded(means(edges, *intervals, sizes)),
        "running": _rounded(means(edges, *intervals, one_each[0])), "waiting": _rounded(means(edges, *waits, one_each[1])),
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
