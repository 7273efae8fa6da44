"""Texts that a spreadsheet would take for a formula and run: ``=cmd|...``, ``+1+1``, ``@SUM(A1)``."""

from __future__ import annotations

import re

FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+\-]?[0-9.]+([eE][+\-]?[0-9]+)?$"


def harmless(text: str) -> str:
    """The text with a quote in front if a spreadsheet would run it."""
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text
