"""Text that can be written down, and text that a spreadsheet would take for a formula and run: ``=cmd|...``, ``+1+1``, ``@SUM(A1)``."""

from __future__ import annotations

import re


def is_text(text: str) -> bool:
    """Whether it can be encoded: half of a surrogate pair, which JSON can spell, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+\-]?[0-9.]+([eE][+\-]?[0-9]+)?$"


def harmless(text: str) -> str:
    """The text with a quote in front if a spreadsheet would run it."""
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text
