"""The jobs that wait in IRFsim as columns, each with a CPU and a GPU configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.policies.allox.ways import Floats, Ints

CPU, GPU = 0, 1


class Start(NamedTuple):
    """A row that starts: on which device and on which machine."""

    row: int
    device: int
    machine: int


@dataclass(frozen=True)
class Queued:
    """The full jobs that wait. A user's queue is the order of its rows."""

    number: Ints  # the job's number in the trace
    owner: Ints  # users are numbered in the order of their names
    arrival: Floats
    time: Floats  # per configuration, reported
    need: Floats  # per configuration: cores, GPUs, memory

    def queues(self) -> list[list[int]]:
        """Per user its rows, in queue order."""
        rows: list[list[int]] = [[] for _ in range(int(self.owner.max(initial=-1)) + 1)]
        for row, owner in enumerate(self.owner.tolist()):
            rows[owner].append(row)
        return rows


def room(need: Floats, free: Floats) -> bool:
    """Whether it fits, without any tolerance."""
    return bool(np.all(need <= free))
