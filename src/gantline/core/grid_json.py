"""The grid in a snapshot's document, and back."""

from __future__ import annotations

from typing import Any

from gantline.core.errors import UsageError
from gantline.core.grid import NO_GRID, DevicePower, PowerGrid
from gantline.core.json_reader import Reader, as_number, json_number
from gantline.core.signal import Signal

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
