"""What devices draw, from a text or a file: ``v100=300/60,k80=150/30`` are watts while a gang holds a device and while none does."""

from __future__ import annotations

from math import isfinite
from pathlib import Path

from gantline.core.errors import NotFoundError, UsageError
from gantline.core.grid import DevicePower

_FIX = "write busy/idle watts by type: v100=300/60,k80=150/30"


def read_power(given: str, where: str = "--power") -> dict[str, DevicePower]:
    """Watts by device type; a file has lines ``type,busy,idle``, a heading is passed over."""
    if not given:
        return {}
    if "=" in given:
        cells = [part.partition("=")[::2] for part in given.split(",") if part.strip()]
        return _unique([(name.strip(), watts.split("/"), where) for name, watts in cells])
    if not Path(given).is_file():
        raise NotFoundError(f"no file '{given}'", where=where, fix=_FIX)
    lines = Path(given).read_text(encoding="utf-8").splitlines()
    rows = [(line.split(","), f"{given}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if rows and rows[0][0][0].strip().lower() in ("type", "device"):
        rows = rows[1:]
    return _unique([(cells[0].strip(), cells[1:], place) for cells, place in rows])


def _unique(rows: list[tuple[str, list[str], str]]) -> dict[str, DevicePower]:
    found: dict[str, DevicePower] = {}
    for name, watts, where in rows:
        if name in found:
            raise UsageError(f"device type '{name}' stands there twice", where=where)
        found[name] = _power(name, watts, where)
    return found


def _power(name: str, watts: list[str], where: str) -> DevicePower:
    try:
        numbers = [float(each) for each in watts]
    except ValueError:
        numbers = []
    if not name or not 1 <= len(numbers) <= 2 or not all(isfinite(each) and each >= 0 for each in numbers):
        raise UsageError(f"'{name}={'/'.join(watts)}' is no power", where=where, fix=_FIX)
    power = DevicePower(*numbers)
    if power.idle > power.busy:
        raise UsageError(f"a '{name}' draws more idle ({power.idle:g} W) than busy ({power.busy:g} W)", where=where, fix=_FIX)
    return power
