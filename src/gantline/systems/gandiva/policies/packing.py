"""Two jobs on the same GPUs, tried and undone when turns would be better (Gandiva, OSDI 2018, section 3.3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gantline.core.memory import Memory

_TRIALS = 2
"""A job that so many trials were in vain for is left alone."""

Pair = tuple[int, int]
"""The rows of two jobs, ascending."""


@dataclass(eq=False)
class Packing:
    """The pairs in force since when, those that did not pay, and the speed of each job alone; jobs are named by their rows."""

    since: dict[Pair, float] = field(default_factory=dict)
    refused: set[Pair] = field(default_factory=set)
    alone: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def remembered(memory: Mapping[str, Memory], rows: set[int]) -> Packing:
        """What the last plan carried, of jobs that are still there."""
        since = {(a, b): at for a, b, at in memory.get("pairs", ()) if a in rows and b in rows}
        refused = {(a, b) for a, b in memory.get("refused", ()) if a in rows and b in rows}
        return Packing(since, refused, {int(row): speed for row, speed in memory.get("alone", {}).items() if int(row) in rows})

    def memory(self) -> dict[str, Memory]:
        return {
            "pairs": [[a, b, at] for (a, b), at in sorted(self.since.items())],
            "refused": [list(pair) for pair in sorted(self.refused)],
            "alone": {str(row): speed for row, speed in sorted(self.alone.items())},
        }

    def mates(self) -> dict[int, int]:
        return {row: mate for a, b in self.since for row, mate in ((a, b), (b, a))}

    def judge(self, rates: Mapping[int, float], now: float, trial: float) -> None:
        """Undo each pair that has been tried for long enough and does no more than its jobs would in turns."""
        for pair, since in list(self.since.items()):
            tried = now >= since + trial - 1e-9 and all(row in rates for row in pair)
            if tried and math.fsum(rates[row] / self.alone[row] for row in pair) <= 1.0 + 1e-9:
                del self.since[pair]
                self.refused.add(pair)

    def try_one(self, waiting: Sequence[int], hosts: Sequence[int], now: float) -> None:
        """Put the first of the waiting jobs beside the first host that it was not refused with; the least used of each come first."""
        in_vain = Counter(row for pair in self.refused for row in pair)
        closed = set(self.mates()) | {row for row, count in in_vain.items() if count >= _TRIALS}
        for guest in waiting:
            for host in hosts:
                pair = (min(guest, host), max(guest, host))
                if pair not in self.refused and not closed.intersection(pair) and all(row in self.alone for row in pair):
                    self.since[pair] = now
                    return
