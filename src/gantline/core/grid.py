"""The grid behind a cluster: what devices draw, how clean the current is, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gantline.core.signal import Signal


@dataclass(frozen=True, slots=True)
class DevicePower:
    """Watts of one device (of one CPU on nodes without devices) while a gang holds it, and while none does."""

    busy: float
    idle: float = 0.0

    def __str__(self) -> str:
        """As people write it."""
        return f"{self.busy!r}/{self.idle!r}"


@dataclass(frozen=True, slots=True)
class PowerGrid:
    """What a run knows of power; all of it may be absent."""

    carbon: Signal | None = None
    """Grams of CO2 equivalent per kilowatt-hour, over time."""
    electricity: Signal | None = None
    """Money per kilowatt-hour, over time."""
    power: Mapping[str, DevicePower] = field(default_factory=dict)
    """By device type."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", MappingProxyType(dict(self.power)))


NO_GRID = PowerGrid()
"""Nothing is known of power."""
