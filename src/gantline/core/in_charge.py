"""Which policy decides, where one policy chooses among several."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InCharge:
    """The policy that made a plan: its name, since when it decides, and why it was chosen."""

    policy: str
    since: float
    why: str = ""

    def __str__(self) -> str:
        return f"{self.policy} is in charge" + (f": {self.why}" if self.why else "")
