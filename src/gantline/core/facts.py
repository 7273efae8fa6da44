"""What holds from the beginning of a run to its end, and what every policy may count on: costs, prices, bounds and delays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from gantline.core.errors import UsageError, near
from gantline.core.grid import NO_GRID, PowerGrid
from gantline.core.units import LONGEST, seconds

if TYPE_CHECKING:
    from gantline.core.device_speeds import DeviceSpeeds


@dataclass(frozen=True)
class Costs:
    """Seconds. `checkpoint` is the time between saves: a failure loses what was done since (0: nothing is ever lost).

    `doubling` is what each doubling of a gang's devices adds to any cost that is not zero.
    """

    start: float = 0.0
    resume: float = 0.0
    resize: float = 0.0
    move: float = 0.0
    checkpoint: float = 0.0
    doubling: float = 0.0
    switch: float | None = None  # when its turn comes again in a rotation; None: as `resume`

    def __post_init__(self) -> None:
        for item in fields(self):
            if getattr(self, item.name) is not None and not getattr(self, item.name) >= 0:
                raise UsageError(f"cost '{item.name}' is {getattr(self, item.name)}", where="costs", fix="use zero or more seconds")
            if item.name != "checkpoint" and (getattr(self, item.name) or 0.0) > LONGEST:  # never to save is to save after infinity
                raise UsageError(f"cost '{item.name}' is {getattr(self, item.name):g} s", where="costs", fix="use at most 300 years")

    @property
    def free(self) -> bool:
        """Whether stopping and moving gangs costs nothing."""
        return not (self.resume or self.move)

    def scaled(self, cost: float, devices: int) -> float:
        """What a change costs a gang of so many devices."""
        return cost + self.doubling * math.log2(devices) if cost > 0 and devices > 1 else cost

    @property
    def of_switch(self) -> float:
        """Seconds when a job's turn comes again in its rotation."""
        return self.resume if self.switch is None else self.switch

    @staticmethod
    def parse(text: str) -> Costs:
        """Costs from ``start=30,resume=60``; a single number is the cost of start, resume, resize and move alike.

        ``measured`` are those that ElasticFlow's authors measured and charge (ASPLOS 2023): 4 s to set up the worker of one GPU, 2 s more
        for each doubling, 27 s more where trainers restart. Muri's restarts (SIGCOMM 2022) took 4 to 40 s by model, Pollux (OSDI 2021)
        charges 30. ``stop-resume`` and ``stop-free`` are the two ways to resize of EDL (Wu et al., TPDS 2022): all workers stop, save and
        start again, which takes 30 s and more; or newcomers get ready while the others train, and all pause for about a second.
        """
        if not text:
            return Costs()
        if text in NAMED:
            return NAMED[text]
        if "=" not in text:
            value = seconds(text, "--costs")
            return Costs(start=value, resume=value, resize=value, move=value)
        known = {item.name for item in fields(Costs)}
        values: dict[str, float] = {}
        for part in text.split(","):
            name, _, amount = part.partition("=")
            if name.strip() not in known:
                raise UsageError(f"no cost '{name.strip()}'", where="--costs", fix=near(name.strip(), known))
            if name.strip() in values:
                raise UsageError(f"the cost '{name.strip()}' is given twice", where="--costs", fix="keep one of them")
            values[name.strip()] = seconds(amount, f"--costs {name.strip()}")
        return Costs(**values)


MEASURED = Costs(start=4.0, resume=31.0, resize=31.0, move=31.0, doubling=2.0)
STOP_RESUME = Costs(start=30.0, resume=30.0, resize=30.0, move=30.0)
STOP_FREE = Costs(start=30.0, resume=30.0, resize=1.0, move=1.0)
NAMED = {"measured": MEASURED, "stop-resume": STOP_RESUME, "stop-free": STOP_FREE}


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
