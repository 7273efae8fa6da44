"""Prices of device types, from values, a text or a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gantline.core.errors import NotFoundError
from gantline.models.prices import parse_prices


def read_prices(given: Mapping[str, float] | str | Path | None, what: str = "prices") -> dict[str, float]:
    """Prices (or other numbers above zero) of device types from a mapping, from ``v100=0.74,k80=0.135`` or from a file (CSV or JSON)."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return parse_prices(",".join(f"{name}={price}" for name, price in given.items()), what)
    if isinstance(given, str) and "=" in given:
        return parse_prices(given, what)
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"{what} {path}", fix="name a file, or write v100=0.74,k80=0.135")
    return parse_prices(path.read_text(encoding="utf-8"), str(path))
