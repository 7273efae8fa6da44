"""Choose the tests that wait for the long run, and write their names to `tests/later.txt`: `make later`, after `make reach`.

At every change some test still reaches nearly every branch that any test reaches, and some test of a room nearly every branch of this
room that its tests reach: those of other rooms pass through it, but ask something else. Of the functions that will do, those that reach
most in a second are taken. A slow one that brings few branches of its own waits all the same.

Never wait: what takes less than a twentieth of a second a case or 0.15 seconds in all, tests that draw examples or compare with an
oracle, what starts processes (nobody sees what these reach), what reaches so little that its strength must lie elsewhere, and what
`never_later.txt` names.
Comparisons with originals may wait: the records hold what they held, and `make records` makes all of them.
"""

from __future__ import annotations

import heapq
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from reached import Test, tests
from tests.later import LIST, defined_in

ROOT = Path(__file__).parents[1]
NEVER = ROOT / ".ci" / "never_later.txt"
HEAD = """\
# Tests that wait for `make test-long`, chosen by `make later`: others reach nearly all that these reach (docs/design/rules-as-tests.md).
# A test that is not named here runs at every change; whoever names files, folders or words of tests gets all of them.
"""
BRANCHES_PER_SECOND = 80.0  # of its own; a test which brings fewer waits
NEAR = 1  # functions of a room's own tests which reach a branch of it, where there are so many
SECONDS_OF_ANY_TEST = 0.002  # what pytest itself takes
WORTH_A_LINE = 0.05  # seconds of a case; what takes less stays: most of it asks something of its own in no time
WORTH_WAITING = 0.15  # seconds of all cases: two fifths of what could wait takes less, and a thirtieth of the suite in all
COMPARES = re.compile("@given|oracle|optim|solver|clarabel|scipy|plain|against")
FEW_BRANCHES = 50  # what reaches fewer asks nothing of what it reaches


@dataclass
class Function:
    """A test function with all of its cases."""

    name: str
    seconds: float
    branches: NDArray[np.int64]  # numbered from zero
    own: NDArray[np.int64]  # those of the room whose tests it is among
    runs: bool  # at every change

    def reach(self, needed: NDArray[np.int64], near: NDArray[np.int64]) -> int:
        """How much of what is needed."""
        return int((needed[self.branches] > 0).sum() + (near[self.own] > 0).sum())

    def count(self, needed: NDArray[np.int64], near: NDArray[np.int64], by: int) -> None:
        needed[self.branches] += by
        near[self.own] += by


def choose(functions: list[Function], near_by: int = NEAR) -> None:
    """Let some more of them run, until all that is needed is reached."""
    size = 1 + max(int(function.branches.max(initial=0)) for function in functions)
    near, needed = np.zeros((2, size), np.int64)
    for function in functions:
        function.count(needed, near, 1)
    np.minimum(needed, 1, out=needed)
    np.minimum(near, near_by, out=near)
    for function in functions:
        if function.runs:
            function.count(needed, near, -1)
    left = [(-np.inf, row) for row, function in enumerate(functions) if not function.runs]
    heapq.heapify(left)
    taken = []
    while left:
        _, row = heapq.heappop(left)
        function = functions[row]
        worth = -function.reach(needed, near) / function.seconds
        if worth > -BRANCHES_PER_SECOND:
            continue
        if left and worth > left[0][0]:
            heapq.heappush(left, (worth, row))
            continue
        function.runs = True
        function.count(needed, near, -1)
        taken.append(function)
    for function in sorted(taken, key=lambda function: -function.seconds):  # the later ones may have made an earlier one superfluous
        if (needed[function.branches] < 0).all() and (near[function.own] < 0).all():
            function.runs = False
            function.count(needed, near, 1)


def functions_of(files: list[str], found: list[Test], kept: tuple[str, ...]) -> list[Function]:
    """All of them, with those that never wait."""
    cases: dict[str, list[Test]] = defaultdict(list)
    for test in found:
        cases[test.function].append(test)
    branches = np.unique(np.concatenate([test.reached for test in found]))
    rooms = np.array([file.rpartition("/")[0] + "/" for file in files])[branches >> 42]
    functions = []
    for name, some in cases.items():
        mine = np.searchsorted(branches, np.unique(np.concatenate([test.reached for test in some])))
        folder = name.partition("/")[2].rpartition("/")[0]
        own = mine[np.char.startswith(rooms[mine], folder + "/")]
        seconds = sum(test.seconds + SECONDS_OF_ANY_TEST for test in some)
        unseen = any(test.children > 0.001 or not test.passed for test in some)
        inherited = name not in defined_in(name.partition("::")[0])
        quick = seconds < max(WORTH_A_LINE * len(some), WORTH_WAITING)
        elsewhere = inherited or unseen or len(mine) < FEW_BRANCHES or _compares(name)
        runs = quick or elsewhere or name.startswith(kept)
        functions.append(Function(name, seconds, mine, own, runs))
    return functions


def _compares(name: str) -> bool:
    """Whether a test draws examples or compares with somebody else's answer, by its names, its decorators and its body."""
    path, _, function = name.partition("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    at = text.find(f"def {function.rpartition('::')[2]}(")
    below = text.find("\n\n\n", at)
    return COMPARES.search(path + text[text.rfind("\n\n", 0, at) : below if below > 0 else None]) is not None


def never() -> tuple[str, ...]:
    """How the names begin of those that never wait."""
    lines = NEVER.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def main(traced: str, plain: str) -> int:
    functions = functions_of(*tests(traced, plain), never())
    choose(functions)
    waiting = sorted(function.name for function in functions if not function.runs)
    LIST.write_text(HEAD + "\n".join(waiting) + "\n", encoding="utf-8")
    spent, left = (sum(function.seconds for function in functions if function.runs or every) for every in (True, False))
    print(f"{len(waiting)} of {len(functions)} test functions wait: {spent:.0f} seconds become {left:.0f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
