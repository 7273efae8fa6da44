"""Which values a parameter takes: words, a range, a unit. Said once, beside the parameter; checked and shown from there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class Takes:
    """One of some words, or a number within bounds; where both are given, either."""

    one_of: tuple[str, ...] = ()
    low: float = -math.inf  # the least value
    above: float = -math.inf  # every value is larger
    high: float = math.inf  # the greatest value
    below: float = math.inf  # every value is smaller
    finite: bool = False
    unit: str = ""

    @property
    def is_number(self) -> bool:
        """Whether a number is among what it takes."""
        bounds = (self.low, self.above, self.high, self.below)
        return bool(self.unit) or self.finite or any(math.isfinite(bound) for bound in bounds)

    def admits(self, value: object) -> bool:
        """Whether the value is one of those; nothing given (None) is always one."""
        if value is None or (isinstance(value, str) and value in self.one_of):
            return True
        if not self.is_number or not isinstance(value, str | int | float):
            return False
        try:
            number = float(value)
        except ValueError:
            return False
        inside = self.low <= number <= self.high and (number > self.above or self.above == -math.inf)
        return inside and (number < self.below or self.below == math.inf) and not (self.finite and math.isinf(number))

    def __str__(self) -> str:
        *most, last = [word or "nothing" for word in self.one_of] or [""]
        words = f"{', '.join(most)} or {last}" if most else last
        return f"{self._range()}, or {words}" if words and self.is_number else words or self._range()

    def _range(self) -> str:
        parts = []
        if math.isfinite(self.above):
            parts.append(f"above {self.above:g}")
        if math.isfinite(self.low):
            parts.append(f"from {self.low:g}" if math.isfinite(self.high) or math.isfinite(self.below) else f"{self.low:g} or more")
        if math.isfinite(self.high):
            parts.append(f"up to {self.high:g}")
        if math.isfinite(self.below):
            parts.append(f"below {self.below:g}")
        bounds = " ".join(parts) + (" and finite" if self.finite else "")
        return f"{self.unit or 'a number'}, {bounds}" if parts else f"{self.unit or 'a number'}{bounds}"


def param(
    help: str,
    *,
    one_of: Iterable[str] = (),
    low: float = -math.inf,
    above: float = -math.inf,
    high: float = math.inf,
    below: float = math.inf,
    finite: bool = False,
    unit: str = "",
) -> dict[str, object]:
    """Metadata of a parameter: ``slack: float = field(default=1.0, metadata=param("...", low=0.0, unit="seconds"))``."""
    return {"help": help, "takes": Takes(tuple(one_of), low, above, high, below, finite, unit)}


def parameter(default: Default, help: str, **takes: Any) -> Default:
    """A field that is a parameter: ``slack: float = parameter(1.0, "...", low=0.0, unit="seconds")``; `takes` are those of `param`."""
    return field(default=default, metadata=param(help, **takes) if takes else {"help": help})
