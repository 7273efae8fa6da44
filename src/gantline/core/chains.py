"""Who owns which devices, read for many rows at once: a gang is a chain through the device table."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import compiled


@compiled
def chains(I: Ints, D: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The devices of these rows, one row after the other and each in rank order, and where each row's end."""
    ends = np.empty(rows.shape[0], dtype=np.int64)
    devices = np.empty(D.shape[1], dtype=np.int64)
    count = 0
    for i in range(rows.shape[0]):
        device = I[c.HEAD, rows[i]]
        while device >= 0:
            devices[count] = device
            count += 1
            device = D[c.D_NEXT, device]
        ends[i] = count
    return ends, devices[:count]
