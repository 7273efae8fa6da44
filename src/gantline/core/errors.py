"""Errors a person can act on: where it went wrong, what is wrong, and how to put it right.

Every mistake of a user ends in exactly one of these. The command line prints ``str(error)`` on stderr and leaves with
``error.exit_code``; nothing else of the program may call ``sys.exit``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

_READABLE = 200  # names in a list


class GantlineError(Exception):
    """A refusal that names its place, its cause and its remedy."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f" ({self.fix})" if self.fix else ""
        return f"{place}{self.what}{remedy}"


class UsageError(GantlineError):
    """The request itself is wrong: an option, a parameter, a malformed file."""

    exit_code = 2


class NotFoundError(GantlineError):
    """A thing that the request names does not exist."""

    exit_code = 3


class RefusedError(GantlineError):
    """The request is well formed, but a rule, a quota or a policy says no."""

    exit_code = 4


class UnreachableError(GantlineError):
    """A service that the request needs does not answer."""

    exit_code = 5


class TraceError(UsageError):
    """A trace that contradicts itself; names the file, the line and the field."""

    def __init__(self, what: str, *, file: str = "", line: int | None = None, field: str = "", fix: str = "") -> None:
        place = file
        if line is not None:
            place += f":{line}"
        if field:
            place += f": field '{field}'" if place else f"field '{field}'"
        self.file, self.line, self.field = file, line, field
        super().__init__(what, where=place, fix=fix)


def near(name: str, known: Iterable[str]) -> str:
    """A remedy that proposes the closest known names, ``did you mean 'srtf'?``, or lists all of them."""
    names = sorted(known)
    close = get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    return "known: " + listed(names)


def listed(names: Iterable[str]) -> str:
    """All of these names, those with the same word before a dot together: ``fifo, gavel.{allox, fifo}, srtf``.

    Of the jobs and nodes of a cluster there may be thousands: they are named as far as one reads them, and the rest are counted.
    """
    known = sorted(names)
    shown = known[:_READABLE]
    heads = Counter(name.partition(".")[0] for name in shown if "." in name)
    groups: dict[str, list[str]] = {}
    for name in shown:
        head, dot, rest = name.partition(".")
        groups.setdefault(f"{head}." if dot and heads[head] > 1 else name, []).append(rest)
    entries = [f"{head}{{{', '.join(rest)}}}" if len(rest) > 1 else head for head, rest in groups.items()]
    return ", ".join(entries) + (f" and {len(known) - len(shown):,} more" if len(known) > len(shown) else "")
