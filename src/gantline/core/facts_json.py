"""The facts of a run as keys of a snapshot's document, and back: what is as usual is not written."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from gantline.core.costs import Costs
from gantline.core.errors import UsageError
from gantline.core.facts import NO_FACTS, Facts
from gantline.core.fields import victims_rule
from gantline.core.grid_json import GRID, decode_grid, encode_grid
from gantline.core.json_reader import Reader, as_number, json_number

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
