"""The queues of IRFsim as columns: jobs and profiling samples, each with a CPU and a GPU configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.policies.allox.ways import Floats, Ints

CPU, GPU = 0, 1


class Start(NamedTuple):
    """A row that starts: on which device, on which machine (AlloX), and with whose demand and time (DRF extended)."""

    row: int
    device: int
    machine: int = -1
    like: int = -1


@dataclass(frozen=True)
class Queued:
    """Everything that waits. A user's queue is the order of its rows, as the last sort left it."""

    number: Ints  # the job's number in the trace
    owner: Ints  # users are numbered in the order of their names
    arrival: Floats
    time: Floats  # per configuration, reported
    need: Floats  # per configuration: cores, GPUs, memory
    sample: Ints  # the device that a profiling sample is for; -1 for jobs

    def queues(self) -> list[list[int]]:
        """Per user its rows, in queue order."""
        rows: list[list[int]] = [[] for _ in range(int(self.owner.max(initial=-1)) + 1)]
        for row, owner in enumerate(self.owner.tolist()):
            rows[owner].append(row)
        return rows

    def jobs(self, rows: list[int]) -> Iterator[int]:
        """Those of the rows that are full jobs."""
        return (row for row in rows if self.sample[row] < 0)


def room(need: Floats, free: Floats) -> bool:
    """Whether it fits, without any tolerance."""
    return bool(np.all(need <= free))


def flat(queues: list[list[int]]) -> Ints:
    """The order in which rows are to be kept: user by user, as the queues are now."""
    return np.array([row for queue in queues for row in queue], dtype=np.int64)
