"""Intervals on devices as a picture: the work is one pass over the pixels they cover, however many there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gantline.core.jit import compiled


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
    of the interval that covers most of it, because a mean of colours would look like somebody else's, and is opaque as
    far as it is busy.
    """
    rows = min(device_count, most_rows)
    scale = width / (end - begin) if end > begin else 0.0
    return _draw(starts, ends, first_device, devices, colours, palette, begin, scale, device_count, rows, width)


@compiled
def _draw(
    starts: NDArray[np.float64],
    ends: NDArray[np.float64],
    first_device: NDArray[np.int64],
    devices: NDArray[np.int64],
    colours: NDArray[np.int64],
    palette: NDArray[np.uint8],
    begin: float,
    scale: float,
    device_count: int,
    rows: int,
    width: int,
) -> NDArray[np.uint8]:
    busy = np.zeros((rows, width), dtype=np.float32)
    most = np.zeros((rows, width), dtype=np.float32)
    colour = np.zeros((rows, width), dtype=np.int32)
    in_row = np.zeros(rows, dtype=np.float32)
    for device in range(device_count):
        in_row[device * rows // device_count] += 1.0
    for i in range(starts.size):
        left = max(0.0, (starts[i] - begin) * scale)
        right = min(float(width), (ends[i] - begin) * scale)
        if right <= left:
            continue
        first, last = int(left), min(width - 1, int(right))
        for d in range(first_device[i], first_device[i + 1]):
            row = devices[d] * rows // device_count
            for x in range(first, last + 1):
                covered = np.float32(min(right, x + 1.0) - max(left, float(x)))
                if covered <= 0.0:
                    continue
                busy[row, x] += covered
                if covered > most[row, x]:
                    most[row, x] = covered
                    colour[row, x] = colours[i]
    pixels = np.zeros((rows, width, 4), dtype=np.uint8)
    for row in range(rows):
        for x in range(width):
            if busy[row, x] > 0.0:
                for channel in range(3):
                    pixels[row, x, channel] = palette[colour[row, x], channel]
                share = min(np.float32(1.0), busy[row, x] / in_row[row])
                pixels[row, x, 3] = np.uint8(share * 255.0 + 0.5)
    return pixels
