"""What it costs to start, resume, resize and move a gang, and how often work is saved."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gantline.core.errors import UsageError, near
from gantline.core.units import seconds


@dataclass(frozen=True)
class Costs:
    """Seconds. `checkpoint` is the time between saves: a failure loses what was done since (0: nothing is ever lost)."""

    start: float = 0.0
    resume: float = 0.0
    resize: float = 0.0
    move: float = 0.0
    checkpoint: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            if not getattr(self, item.name) >= 0:
                raise UsageError(f"cost '{item.name}' is {getattr(self, item.name)}", where="costs", fix="use zero or more seconds")

    @staticmethod
    def parse(text: str) -> Costs:
        """Costs from ``start=30,resume=60``; a single number is the cost of start, resume, resize and move alike."""
        if not text:
            return Costs()
        if "=" not in text:
            value = seconds(text, "--costs")
            return Costs(start=value, resume=value, resize=value, move=value)
        known = {item.name for item in fields(Costs)}
        values: dict[str, float] = {}
        for part in text.split(","):
            name, _, amount = part.partition("=")
            if name.strip() not in known:
                raise UsageError(f"no cost '{name.strip()}'", where="--costs", fix=near(name.strip(), known))
            values[name.strip()] = seconds(amount, f"--costs {name.strip()}")
        return Costs(**values)
