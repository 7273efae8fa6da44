"""Text that can be written down."""

from __future__ import annotations


def is_text(text: str) -> bool:
    """Whether it can be encoded: half of a surrogate pair, which JSON can spell, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
