"""JSON text that somebody else wrote."""

from __future__ import annotations

import json
from typing import Any


def loads(text: str | bytes) -> Any:
    """The value; what cannot be read is a JSONDecodeError, also if it is nested so deeply that reading would never end."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None
