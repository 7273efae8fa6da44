"""What holds from the beginning of a run to its end, and what every policy may count on: costs, prices, bounds and delays.

The grid behind the cluster belongs to it: what devices draw, how clean the current is, and what it costs, as signals that change in
steps. Snapshots carry the facts as keys of their documents; what is as usual is not written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError, near
from gantline.core.fields import LONGEST, seconds, victims_rule
from gantline.core.json_reader import Reader, as_number, encode, encode_record

DAY = 86400.0


@dataclass(frozen=True)
class Signal:
    """`values[k]` holds from `step * k` to `step * (k + 1)` seconds after the beginning of the run.

    Behind its end the signal repeats its last whole day (all of it, where it is shorter than a day): a stated fallback, which
    `covers` lets a caller report.
    """

    values: tuple[float, ...]
    step: float = 3600.0
    origin: float | None = None
    """When it begins, in seconds since 1970, where its file gives dates."""

    def starting(self, seconds: float) -> Signal:
        """The same signal for a run which begins so many seconds after its first value; whole steps only."""
        skipped = round(seconds / self.step)
        if abs(skipped * self.step - seconds) > 1e-6 or not 0 <= skipped < len(self.values):
            last = (len(self.values) - 1) * self.step / 3600.0
            raise UsageError(
                f"the series has no step {seconds / 3600.0:g} hours after its beginning",
                where="--series-start",
                fix=f"name a whole step of {self.step:g} s, from 0 to {last:g} hours",
            )
        begins = None if self.origin is None else self.origin + seconds
        return replace(self, values=self.values[skipped:], origin=begins)

    @property
    def end(self) -> float:
        """The instant up to which the values are given, not repeated."""
        return self.step * len(self.values)

    def covers(self, time: float) -> bool:
        return time <= self.end

    def at(self, time: Any) -> Any:
        """The value at an instant, or at each of an array of instants."""
        return self._levels[self._place(np.floor_divide(time, self.step).astype(np.int64))]

    def integral(self, begin: Any, end: Any) -> Any:
        """The sum over time, value times seconds, from begin to end; arrays give one sum each."""
        return self._sum_until(end) - self._sum_until(begin)

    def next_step(self, time: float) -> float:
        """The first instant after `time` at which another value begins."""
        return float((np.floor_divide(time, self.step) + 1.0) * self.step)

    @cached_property
    def _levels(self) -> Floats:
        return np.asarray(self.values, dtype=np.float64)

    @cached_property
    def _cycle(self) -> int:
        """How many of the last values are repeated behind the end."""
        return min(len(self.values), max(1, round(DAY / self.step)))

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate(([0.0], np.cumsum(self._levels))) * self.step

    def _place(self, number: Any) -> Any:
        """The value that stands for a step, also behind the end."""
        first = len(self.values) - self._cycle
        return np.where(number < len(self.values), number, first + (number - first) % self._cycle)

    def _sum_until(self, time: Any) -> Any:
        number = np.floor_divide(time, self.step).astype(np.int64)
        first = len(self.values) - self._cycle
        rounds = np.maximum(number - first, 0) // self._cycle * (number >= len(self.values))
        place = number - rounds * self._cycle
        whole = self._sums[place] + rounds * (self._sums[-1] - self._sums[first])
        return whole + self._levels[self._place(number)] * (time - number * self.step)


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


@dataclass(frozen=True)
class DeviceSpeeds:
    """Per class of jobs one factor per device, by the device's number: 1.2 means that a step takes 1.2 times as long.

    Devices of one model differ, and by how much depends on the application (PAL, SC 2024). A gang goes at the pace of its slowest
    device, and slower again by the locality penalty where it spans nodes.
    """

    slowdown: Mapping[str, Floats]
    bins: Mapping[str, Floats] = field(default_factory=dict)
    """Per class and device the factor of its bin, where the file gives bins; else they are computed."""

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(self.slowdown))

    @property
    def devices(self) -> int:
        return len(next(iter(self.slowdown.values())))

    def of_gang(self, which: str, devices: list[int], nodes: int, penalty: float) -> float:
        """How many times longer a step takes on these devices."""
        slowest = float(np.max(self.slowdown[which][devices]))
        return slowest * (penalty if nodes > 1 else 1.0)


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


GRID = ("carbon", "electricity", "power")


def encode_grid(grid: PowerGrid) -> dict[str, Any]:
    """The keys of a document; what is not known is not written."""
    signals = {"carbon": grid.carbon, "electricity": grid.electricity}
    found = {name: encode_record(signal, ("step", "values"), full=True) for name, signal in signals.items() if signal is not None}
    if grid.power:
        found["power"] = encode({name: [each.busy, each.idle] for name, each in grid.power.items()})
    return found


def decode_grid(reader: Reader) -> PowerGrid:
    """What the document says of power."""
    if not any(name in reader for name in GRID):
        return NO_GRID
    watts = reader.raw("power", {})
    Reader(watts, reader.at("power"))
    power = {str(name): _power(value, f"{reader.at('power')}.{name}") for name, value in watts.items()}
    return PowerGrid(_signal(reader, "carbon"), _signal(reader, "electricity"), power)


def _signal(reader: Reader, name: str) -> Signal | None:
    if name not in reader:
        return None
    inner = Reader(reader.raw(name), reader.at(name))
    inner.only(("step", "values"))
    values = inner.raw("values", [])
    step = inner.number("step", 3600.0)
    if not isinstance(values, list) or not values or not step > 0:
        raise UsageError("is no series", where=inner.at("values"), fix='{"step": 3600, "values": [300, 250, ...]}')
    return Signal(tuple(as_number(value, inner.at("values")) for value in values), step)


def _power(value: Any, where: str) -> DevicePower:
    if not isinstance(value, list) or len(value) != 2:
        raise UsageError("is no pair of watts", where=where, fix="write [busy, idle]")
    return DevicePower(*(as_number(each, where) for each in value))


FACTS = ("costs", "min_run", "latency", "prices", "victims", "collocates", "placement", *GRID)
_COSTS = tuple(item.name for item in fields(Costs))


def encode_facts(facts: Facts) -> dict[str, Any]:
    """The keys of a document."""
    found = encode_record(facts, ("costs", "min_run", "latency", "prices", "victims", "collocates"))
    if (rule := facts.placement if isinstance(facts.placement, str) else facts.placement.name) != NO_FACTS.placement:
        found["placement"] = rule
    return found | encode_grid(facts.grid)


def decode_facts(reader: Reader) -> Facts:
    """The facts in a document; those that it does not name are as usual."""
    if not any(name in reader for name in FACTS):
        return NO_FACTS
    costs = Reader(reader.raw("costs", {}), reader.at("costs"))
    costs.only(_COSTS)
    seconds = {name: _from_zero(costs, name) for name in _COSTS if name in costs}
    prices = reader.raw("prices", {})
    Reader(prices, reader.at("prices"))
    money = {str(name): as_number(price, f"{reader.at('prices')}.{name}") for name, price in prices.items()}
    victims = victims_rule(reader.text("victims", NO_FACTS.victims), reader.at("victims"))
    bounds = _from_zero(reader, "min_run"), _from_zero(reader, "latency")
    collocates, placement = reader.flag("collocates", True), reader.text("placement", "first-free")
    return Facts(Costs(**seconds), *bounds, money, decode_grid(reader), victims=victims, collocates=collocates, placement=placement)


def _from_zero(reader: Reader, name: str) -> float:
    value = reader.number(name, 0.0)
    if not 0.0 <= value < math.inf:
        raise UsageError(f"is {value:g}", where=reader.at(name), fix="use zero or more seconds")
    return value
