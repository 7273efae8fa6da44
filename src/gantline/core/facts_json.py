"""The facts of a run and its grid as keys of a snapshot's document, and back: what is as usual is not written."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from gantline.core.errors import UsageError
from gantline.core.facts import NO_FACTS, Costs, Facts
from gantline.core.fields import victims_rule
from gantline.core.grid import NO_GRID, DevicePower, PowerGrid, Signal
from gantline.core.json_reader import Reader, as_number, json_number

GRID = ("carbon", "electricity", "power")


def encode_grid(grid: PowerGrid) -> dict[str, Any]:
    """The keys of a document; what is not known is not written."""
    signals = (("carbon", grid.carbon), ("electricity", grid.electricity))
    found: dict[str, Any] = {
        name: {"step": json_number(signal.step), "values": [json_number(value) for value in signal.values]}
        for name, signal in signals
        if signal is not None
    }
    if grid.power:
        found["power"] = {name: [json_number(each.busy), json_number(each.idle)] for name, each in grid.power.items()}
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
    found: dict[str, Any] = {}
    if facts.costs != NO_FACTS.costs:
        given = {name: getattr(facts.costs, name) for name in _COSTS}
        found["costs"] = {name: json_number(value) for name, value in given.items() if value != getattr(NO_FACTS.costs, name)}
    found |= {name: json_number(value) for name, value in (("min_run", facts.min_run), ("latency", facts.latency)) if value}
    if facts.prices:
        found["prices"] = {name: json_number(price) for name, price in facts.prices.items()}
    if facts.victims != NO_FACTS.victims:
        found["victims"] = facts.victims
    if not facts.collocates:
        found["collocates"] = False
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
