"""By how much forecasts are moved, because earlier ones were late; `lateness` learns it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stretch:
    """Lengths by which each instant of a forecast is moved, learned from so many forecasts."""

    start_p50: float = 0.0
    start_p90: float = 0.0
    finish_p50: float = 0.0
    finish_p90: float = 0.0
    forecasts: int = 0

    @property
    def text(self) -> str:
        """The stretch as a phrase."""
        return f"stretched as {self.forecasts} earlier forecasts were late" if self.forecasts else ""


UNSTRETCHED = Stretch()
