"""Which slips of Lucid's simulator are repaired, one by one, to see what each changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Repairs(NamedTuple):
    """What the paper means, in place of what the program does."""

    guest: bool = False
    """A guest goes at full speed once its host has left, and may host another job."""
    loan: bool = False
    """A node comes back only if one was lent."""
    profile: bool = False
    """A job joins the queue when its profile is known, not before."""
    second: bool = False
    """A job ends with its work, not a second later."""

    @staticmethod
    def named(words: Sequence[str]) -> Repairs:
        return Repairs(**dict.fromkeys(words, True))
