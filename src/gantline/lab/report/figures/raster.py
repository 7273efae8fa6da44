"""Intervals on devices as a picture: the work is one pass over the pixels they cover, however many there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gantline.core.jit import kernel


def draw_intervals(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    colours: NDArray[np.int64],
    palette: NDArray[np.uint8],
    *,
    begin: float,
    end: float,
    device_count: int,
    width: int,
    most_rows: int,
) -> NDArray[np.uint8]:
    """An RGBA picture of the time from ``begin`` to ``end``, device 0 in row 0.

    Interval ``i`` holds ``devices[first_device[i]:first_device[i + 1]]`` and has the colour ``palette[colours[i]]``. There
    is a row per device, or per several of them when there are more devices than ``most_rows``. A pixel takes the colour
    of the interval that covers most of it, because a mean of colours would look like another job's, and is opaque as
    far as it is busy.
    """
    rows = min(device_count, most_rows)
    scale = width / (end - begin) if end > begin else 0.0
    busy, most = np.zeros((rows, width)), np.zeros((rows, width))
    colour = np.zeros((rows, width), dtype=np.int64)
    _cover(starts, ends, first_device, devices, colours, float(begin), float(scale), device_count, busy, most, colour)
    in_row = np.bincount(np.arange(device_count) * rows // device_count, minlength=rows)
    share = np.minimum(busy / in_row[:, None], 1.0)
    pixels = np.zeros((rows, width, 4), dtype=np.uint8)
    pixels[..., :3] = np.where((busy > 0.0)[..., None], palette[colour], 0)
    pixels[..., 3] = (share * 255.0 + 0.5).astype(np.uint8)
    return pixels


@kernel
def _cover(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    colours: NDArray[np.int64],
    begin: float,
    scale: float,
    device_count: int,
    busy: NDArray[np.float64],
    most: NDArray[np.float64],
    colour: NDArray[np.int64],
) -> None:
    """Add up how far each pixel is busy, and by which interval most."""
    rows, width = busy.shape
    for i in range(starts.size):
        left = max(0.0, (starts[i] - begin) * scale)
        right = min(float(width), (ends[i] - begin) * scale)
        if right <= left:
            continue
        first, last = int(left), min(width - 1, int(right))
        for d in range(first_device[i], first_device[i + 1]):
            row = devices[d] * rows // device_count
            for x in range(first, last + 1):
                covered = min(right, x + 1.0) - max(left, float(x))
                if covered <= 0.0:
                    continue
                busy[row, x] += covered
                if covered > most[row, x]:
                    most[row, x] = covered
                    colour[row, x] = colours[i]
