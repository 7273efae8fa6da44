"""The ways in which a job may run: device type, count, nodes, CPUs, memory, and how fast it is that way.

AlloX' CPU or GPU, Sia's configurations and "any of H100:8, A100:16" are the same thing: rows of one table. A rigid job on a cluster of
one type has exactly one option.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gantline.core import columns as c


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a job, for people and tests; the engine keeps `OptionTable`."""

    type: int  # code of the device type
    gpus: int
    rate: float = 1.0  # work per second, gang together
    rate_spread: float | None = None  # work per second when it spans more nodes than it must (None: the same)
    cpus: float = 0.0  # per device; in all if gpus == 0
    memory: float = 0.0  # GB per device; in all if gpus == 0
    nodes: int = 0  # nodes to span exactly; 0: no matter


@dataclass
class OptionTable:
    """Options of all jobs as two matrices (see `columns`)."""

    F: NDArray[np.float64] = field(default_factory=lambda: np.zeros((c.OF_COLUMNS, 0)))
    I: NDArray[np.int64] = field(default_factory=lambda: np.zeros((c.OI_COLUMNS, 0), dtype=np.int64))

    def __len__(self) -> int:
        return int(self.F.shape[1])

    @staticmethod
    def build(options: list[Option]) -> OptionTable:
        table = OptionTable(np.zeros((c.OF_COLUMNS, len(options))), np.zeros((c.OI_COLUMNS, len(options)), dtype=np.int64))
        for row, option in enumerate(options):
            table.F[c.O_RATE, row] = option.rate
            table.F[c.O_RATE_SPREAD, row] = option.rate if option.rate_spread is None else option.rate_spread
            table.F[c.O_CPUS, row] = option.cpus
            table.F[c.O_MEMORY, row] = option.memory
            table.I[c.O_TYPE, row] = option.type
            table.I[c.O_GPUS, row] = option.gpus
            table.I[c.O_NODES, row] = option.nodes
        return table

    def append(self, option: Option) -> int:
        """Add one option; its row comes back."""
        one = OptionTable.build([option])
        self.F = np.concatenate([self.F, one.F], axis=1)
        self.I = np.concatenate([self.I, one.I], axis=1)
        return len(self) - 1

    @staticmethod
    def rigid(types: NDArray[np.int64], gpus: NDArray[np.int64]) -> OptionTable:
        """One option per job, at rate one."""
        n = len(gpus)
        table = OptionTable(np.zeros((c.OF_COLUMNS, n)), np.zeros((c.OI_COLUMNS, n), dtype=np.int64))
        table.F[c.O_RATE] = 1.0
        table.F[c.O_RATE_SPREAD] = 1.0
        table.I[c.O_TYPE] = types
        table.I[c.O_GPUS] = gpus
        return table

    def __getitem__(self, row: int) -> Option:
        return Option(
            type=int(self.I[c.O_TYPE, row]),
            gpus=int(self.I[c.O_GPUS, row]),
            rate=float(self.F[c.O_RATE, row]),
            rate_spread=float(self.F[c.O_RATE_SPREAD, row]),
            cpus=float(self.F[c.O_CPUS, row]),
            memory=float(self.F[c.O_MEMORY, row]),
            nodes=int(self.I[c.O_NODES, row]),
        )
