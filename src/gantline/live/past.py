"""The journal behind a checkpoint, read for folding: inputs with the time at which they were received, and the decisions that followed.

A line that cannot be read is not a reason to give up: it is named, and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gantline.core.inputs import Input, decode_input
from gantline.core.plan import Plan
from gantline.engine.drivers.live import Live
from gantline.engine.policy_failures import OverBudgetError
from gantline.live.records import UNREADABLE


@dataclass
class Past:
    """A stretch of the journal."""

    script: list[tuple[float, Input]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # of the line of each input
    decisions: list[dict[str, Any]] = field(default_factory=list)
    overruns: dict[int, float] = field(default_factory=dict)  # decisions that came too late, and when they were asked for
    aside: dict[int, str] = field(default_factory=dict)  # number of each line that cannot be used -> why
    lines: int = 0

    @staticmethod
    def read(numbered: Iterable[tuple[int, Mapping[str, Any]]]) -> Past:
        """Read the lines."""
        found = Past()
        for number, line in numbered:
            found.lines += 1
            try:
                found._take(number, line)
            except Exception as error:
                found.aside[number] = f"cannot be read: {one_line(error)}"
        return found

    def _take(self, number: int, line: Mapping[str, Any]) -> None:
        if UNREADABLE in line:
            raise ValueError("it is not JSON")
        if "overrun" in line:
            self.overruns[int(line["overrun"])] = float(line["now"])
        elif "input" in line:
            received = float(line["heard"])
            self.script.append((received, decode_input({key: line[key] for key in line if key not in ("heard", "after")})))
            self.numbers.append(number)
        else:
            self.decisions.append({**line, "decision": int(line["decision"]), "now": float(line["now"]), "hash": str(line["hash"])})

    @property
    def until(self) -> float:
        """The instant of the last decision, whether or not something was received since."""
        return max((*(line["now"] for line in self.decisions), *self.overruns.values()), default=float("-inf"))

    def fold(self, loop: Live) -> None:
        """Fold it into a loop; inputs that cannot be applied are set aside, and leave the script."""
        guard, loop.engine.guard = loop.engine.guard, lambda call: self._again(loop, call)
        try:
            refused = {place: one_line(error) for place, error in loop.fold(self.script, self.until)}
        finally:
            loop.engine.guard = guard
        self.aside |= {self.numbers[place]: f"cannot be applied: {why}" for place, why in refused.items()}
        for place in sorted(refused, reverse=True):
            del self.script[place], self.numbers[place]

    def _again(self, loop: Live, call: Callable[[], Plan]) -> Plan:
        """The policy's answer; a decision that was too late then is too late again, however quick it would be now."""
        if loop.state.decision in self.overruns:
            raise OverBudgetError("the decision took too long", where="journal")
        return call()


def one_line(error: Exception) -> str:
    """An error in one line."""
    what = " ".join(str(error).split())
    return what if what and not isinstance(error, KeyError) else f"{type(error).__name__} {what}".strip()
