"""What `reach` has written, read again: per test the branches that it reaches, its seconds, whether it starts processes."""

from __future__ import annotations

from dataclasses import dataclass
from glob import glob
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Test:
    """One case of a test function."""

    name: str
    passed: bool
    seconds: float
    children: float  # seconds of its child processes, whose branches nobody sees
    reached: NDArray[np.int64]  # branches: the number of a file, and two lines

    @property
    def function(self) -> str:
        return self.name.partition("[")[0]


def tests(traced: str, plain: str) -> tuple[list[str], list[Test]]:
    """The files of the package, and the tests with what they reach in one run and the seconds that they take in another one."""
    seconds = {name: spent for part in _parts(plain) for name, spent in zip(part["tests"].tolist(), part["seconds"].tolist())}
    files: dict[str, int] = {}
    found = []
    for part in _parts(traced):
        number = np.array([files.setdefault(name, len(files)) for name in part["files"].tolist()], np.int64)
        reached = part["reached"]
        reached = reached & ((1 << 42) - 1) | number[reached >> 42] << 42
        starts = [0, *part["ends"].tolist()]
        for row, name in enumerate(part["tests"].tolist()):
            mine = np.unique(reached[starts[row] : starts[row + 1]])
            spent = seconds.get(name, float(part["seconds"][row]))
            found.append(Test(name, bool(part["passed"][row]), spent, float(part["children"][row]), mine))
    return list(files), found


def lines_of(branches: NDArray[np.int64]) -> set[tuple[int, int]]:
    """Files and lines that these branches begin or end at."""
    file = branches >> 42
    both = np.concatenate([file << 20 | branches & 0xFFFFF, file << 20 | branches >> 20 & 0xFFFFF])
    return {(int(key) >> 20, int(key) & 0xFFFFF) for key in np.unique(both)}


def _parts(target: str) -> list[dict[str, Any]]:
    paths = sorted(glob(f"{target}-*.npz"))
    if not paths:
        raise SystemExit(f"nothing was written to {target}-*.npz: run `make reach` first")
    return [dict(np.load(path)) for path in paths]
