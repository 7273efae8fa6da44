"""JSON text from outside."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes, *, unique: bool = False) -> Any:
    """The value; what cannot be read is a JSONDecodeError, also if it is nested so deeply that reading would never end.

    `unique`: an object that gives a key twice cannot be read either, because one of the two values would be ignored.
    """
    try:
        return json.loads(text, object_pairs_hook=_each_once if unique else None)
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # of a number with thousands of digits
        raise json.JSONDecodeError("a number has too many digits", "", 0) from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise json.JSONDecodeError(f"the key '{twice}' is given twice", "", 0)
    return found
