"""Prices of devices: money per device-hour of every type, from text or from a file's lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite

from gantline.core.errors import UsageError, near
from gantline.core.json_reader import loads


def parse_prices(text: str, where: str = "prices") -> dict[str, float]:
    """Prices from ``v100=0.74,p100=0.43``, from lines ``v100,0.74`` (a heading is skipped) or from a JSON object."""
    text = text.strip()
    if text.startswith("{"):
        try:
            body = loads(text, unique=True)
        except json.JSONDecodeError as error:
            raise UsageError(f"is not JSON: {error.msg}", where=f"{where}:{error.lineno}") from None
        return {name: _price(name, value, where) for name, value in body.items()}
    prices: dict[str, float] = {}
    lines = text.splitlines()
    cells = text.split(",") if len(lines) == 1 and "=" in text else lines
    for number, cell in enumerate(cells):
        name, mark, value = (part.strip() for part in cell.partition("=" if "=" in cell else ","))
        if not name:
            continue
        if not mark:
            raise UsageError(f"'{cell.strip()}' is no price", where=where, fix="write type=price, for example v100=0.74,k80=0.135")
        if number == 0 and value.lower() in ("price", "dollars", "cost"):
            continue
        if name in prices:
            raise UsageError(f"the price of '{name}' is given twice", where=where, fix="keep one of them")
        prices[name] = _price(name, value, where)
    return prices


def prices_of(types: Iterable[str], prices: Mapping[str, float], where: str = "prices") -> list[float]:
    """The prices of these types, in their order; a type without one is refused by name."""
    found = []
    for name in types:
        if name not in prices:
            fix = f"give one for every type; {near(name, prices)}" if prices else "give one for every type: v100=0.74,p100=0.43"
            raise UsageError(f"no price for device type '{name}'", where=where, fix=fix)
        found.append(prices[name])
    return found


def _price(name: str, value: object, where: str) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(f"{value!r} is not a number", where=f"{where}: {name}", fix="give money per device-hour") from None
    if not isfinite(number) or number <= 0:
        raise UsageError(f"price {number:g} is not above 0", where=f"{where}: {name}", fix="give money per device-hour")
    return number
