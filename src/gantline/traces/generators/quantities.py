"""Numbers and times as people write them; a mistake names the setting."""

from __future__ import annotations

import math

from gantline.core import units
from gantline.core.errors import UsageError


def fault(field: str, what: str, fix: str = "") -> UsageError:
    """The error for a setting: which one, what is wrong with it, and what would be right."""
    return UsageError(what, where=_place(field), fix=fix)


def number(value: object, field: str) -> float:
    """A finite number."""
    try:
        if isinstance(value, bool):
            raise ValueError
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise fault(field, f"{value!r} is not a number") from None
    if not math.isfinite(found):
        raise fault(field, f"{value!r} is not a finite number")
    return found


def whole(value: object, field: str) -> int:
    """A whole number."""
    found = number(value, field)
    if found != int(found):
        raise fault(field, f"{value!r} is not a whole number")
    return int(found)


def word(value: object, field: str) -> str:
    """A name: some text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise fault(field, f"{value!r} is not a name")
    return value.strip()


def truth(value: object, field: str) -> bool:
    """Yes or no, as YAML and the command line write it."""
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    found = value if isinstance(value, bool) else known.get(str(value).strip().lower())
    if found is None:
        raise fault(field, f"{value!r} is neither true nor false")
    return found


def seconds(value: object, field: str) -> float:
    """A time in seconds: a number, or text with a unit such as ``90s``, ``15m``, ``4h``, ``7d``."""
    found = units.seconds(value, _place(field)) if isinstance(value, str) else value
    return number(found, field)


def check_above_zero(settings: object, *names: str) -> None:
    """Refuse settings of which one of these is zero or less."""
    for name in names:
        if getattr(settings, name) <= 0:
            raise fault(name, f"{getattr(settings, name)} is not above zero")


def _place(field: str) -> str:
    return f"setting '{field}'"
