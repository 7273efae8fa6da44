"""What holds from the beginning of a run to its end, and what every policy may count on: costs, prices, bounds and delays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from gantline.core.costs import Costs
from gantline.core.grid import NO_GRID, PowerGrid

if TYPE_CHECKING:
    from gantline.core.device_speeds import DeviceSpeeds


class NamedRule(Protocol):
    """A rule that documents hold by its name."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Facts:
    """The same for every decision of a run, on either clock; a snapshot lends them to the policy."""

    costs: Costs = field(default_factory=Costs)
    """Seconds that starts, stops, moves and changes of size cost."""
    min_run: float = 0.0
    """Seconds that a gang runs before it may be stopped."""
    latency: float = 0.0
    """Seconds from a decision's snapshot to its commit."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """Money per device-hour, by device type; empty: nothing is said about money."""
    grid: PowerGrid = NO_GRID
    """What devices draw, how clean the current is, and what it costs."""
    device_speeds: DeviceSpeeds | None = None
    """How much slower each device is than the usual one of its type; None: they are all alike."""
    locality: float = 1.0
    """How many times longer a gang's steps take when it spans nodes, where `device_speeds` are given."""

    victims: str = "order"
    """Which gangs are stopped for a job that ranks higher: those that rank lowest, or of all that rank lower those that lose least."""

    collocates: bool = True
    """Whether the executor puts several gangs on one device; where it does not, gangs that would share devices are placed apart."""

    placement: NamedRule | str = "first-free"
    """Which devices gangs get: the rule of the run, or its name where the facts were read from a document."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "prices", MappingProxyType(dict(self.prices)))


NO_FACTS = Facts()
"""Nothing costs anything, and nothing takes time."""
