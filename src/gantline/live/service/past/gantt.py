"""A window of the past as a picture of so many pixels: runs of equal pixels in each row, with the job that has most of each.

A zoom requests another window: the picture is drawn again, so that it is as sharp as the screen at any zoom.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.errors import UsageError
from gantline.lab.report.figures.gantt import draw_intervals
from gantline.live.service.past.occupancy import OTHERS, JobName, Occupancy

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
