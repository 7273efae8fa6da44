"""Synergy's optimum: each job one cell of its profile, so that their relative speeds add up to most (OSDI 2022, section 4.1).

The servers count as one. Jobs of one kind (network and number of GPUs) are interchangeable, so the program asks how many jobs of a kind get
a cell: a few dozen whole numbers instead of one per job and cell. Cells that another beats with no more of anything are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gantline.models.sensitivity import SensitivityProfile
from gantline.models.solvers.linear_programs import LinearProgram, solve


class Cell(NamedTuple):
    """CPUs and memory per GPU, and the speed with them."""

    speed: float
    cpus: float
    memory: float


class JobKind(NamedTuple):
    """So many jobs of so many GPUs each that train one network."""

    cells: tuple[Cell, ...]
    gpus: int
    jobs: int


def useful_cells(profile: SensitivityProfile, least: float) -> tuple[Cell, ...]:
    """The cells at least this fast which no other beats with no more CPUs and memory, fastest first."""
    cells = [
        Cell(float(profile.speed[row, column]), float(cpus), float(memory))
        for row, cpus in enumerate(profile.cpus)
        for column, memory in enumerate(profile.memory)
        if profile.speed[row, column] >= least
    ]
    kept: list[Cell] = []
    for cell in sorted(cells, key=lambda cell: (-cell.speed, cell.cpus, cell.memory)):
        if not any(other.cpus <= cell.cpus and other.memory <= cell.memory for other in kept):
            kept.append(cell)
    return tuple(kept)


def best_cells(kinds: Sequence[JobKind], cpus: float, memory: float) -> list[list[Cell]] | None:
    """For each kind the cells of its jobs, fastest first; None: they cannot all have one."""
    if not kinds:  # no job has a profile, and a solver wants at least one column
        return []
    cells = [(at, cell) for at, kind in enumerate(kinds) for cell in kind.cells]
    gpus = np.array([kinds[at].gpus for at, _ in cells], dtype=np.float64)
    column = np.arange(len(cells))
    amounts = np.array([[cell.cpus, cell.memory] for _, cell in cells]) * gpus[:, None]
    rows = np.concatenate([[at for at, _ in cells], np.repeat([len(kinds), len(kinds) + 1], len(cells))])
    values = np.concatenate([np.ones(len(cells)), amounts[:, 0], amounts[:, 1]])
    matrix = sparse.csc_array((values, (rows, np.tile(column, 3))), shape=(len(kinds) + 2, len(cells)))
    count = np.array([kind.jobs for kind in kinds], dtype=np.float64)
    program = LinearProgram(
        gain=np.array([cell.speed for _, cell in cells]),
        matrix=matrix,
        lower=np.concatenate([count, [0.0, 0.0]]),
        upper=np.concatenate([count, [cpus, memory]]),
        low=np.zeros(len(cells)),
        high=count[[at for at, _ in cells]],
        whole=np.ones(len(cells)),
    )
    found = solve(program, "mip", gap=0.0, jump=False)
    if found.status != "optimal":
        return None
    chosen: list[list[Cell]] = [[] for _ in kinds]
    for (at, cell), jobs in zip(cells, np.rint(found.x).astype(int).tolist()):
        chosen[at] += [cell] * jobs
    return chosen
