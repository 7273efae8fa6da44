"""One way to run a job as a plain JSON object and back."""

from __future__ import annotations

from typing import Any

from gantline.core.columns import HOST_RESOURCE_NAMES
from gantline.core.errors import UsageError, near
from gantline.core.json_reader import Reader, json_number
from gantline.core.options import Option

_OPTION_KEYS = ("type", "gpus", "rate", "rate_spread", "cpus", "memory", "nodes", "storage", "row")


def encode_option(option: Option, types: tuple[str, ...]) -> dict[str, Any]:
    """One way to run, with the name of its type."""
    found: dict[str, Any] = {"type": types[option.type], "gpus": option.gpus}
    spread = option.rate if option.rate_spread is None else option.rate_spread
    amounts = [("rate", option.rate, 1.0), ("rate_spread", spread, option.rate)]
    amounts += [(name, getattr(option, name), 0.0) for name in HOST_RESOURCE_NAMES]
    found |= {key: json_number(value) for key, value, usual in amounts if value != usual}
    return found | ({"nodes": option.nodes} if option.nodes else {})


def decode_option(reader: Reader, types: tuple[str, ...]) -> Option:
    """One way to run."""
    reader.only(_OPTION_KEYS)
    name = reader.text("type", types[0] if len(types) == 1 else None)
    codes = {known.lower(): code for code, known in enumerate(types)}
    if name.lower() not in codes:
        raise UsageError(f"the cluster has no type '{name}'", where=reader.at("type"), fix=near(name, types))
    rate = reader.number("rate", 1.0)
    return Option(
        codes[name.lower()],
        reader.whole("gpus"),
        rate,
        reader.number("rate_spread", rate),
        reader.number("cpus", 0.0),
        reader.number("memory", 0.0),
        reader.whole("nodes", 0),
        reader.number("storage", 0.0),
    )
