"""Whose code is loaded: while a file is read that somebody else may have made, only code that the command line names.

A record, a snapshot or a store says which policy decided, and that may be ``FILE.py:CLASS``. Whoever wrote the file would choose the
program that its reader runs. So inside `only_given` a name of code means one of the given names, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from gantline.core.errors import RefusedError


@dataclass(frozen=True)
class GivenCode:
    """The names of code that the command line gave, and those of them that were asked for."""

    names: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)
    same_file: bool = False  # a name means the very file that was given, not one of the same name elsewhere

    @property
    def unused(self) -> list[str]:
        return [name for name in self.names if name not in self.used]

    def means(self, given: str, name: str) -> bool:
        """Whether a name in a file means the code that was given under this one; records are often read on another machine."""
        if self.same_file:
            return Path(given).resolve() == Path(name).resolve()
        return Path(given).name == Path(name).name


_given: ContextVar[GivenCode | None] = ContextVar("given code", default=None)


@contextmanager
def only_given(code: GivenCode | None = None) -> Iterator[None]:
    """Inside, this code alone is loaded, by default none; registered names mean what they always do."""
    before = _given.set(code or GivenCode())
    try:
        yield
    finally:
        _given.reset(before)


def permitted(name: str, noun: str, flag: str) -> str:
    """The name under which code may be loaded: the given one with the same file name and the same class, wherever that file is."""
    given = _given.get()
    if given is None:
        return name
    found = next((one for one in given.names if given.means(one, name)), None)
    if found is None:
        what = f"the {noun} '{name[:200]}' is a program that only the file names, and such a program is not run"
        raise RefusedError(what, fix=f"read that program, and name it yourself: {flag} ./{Path(name).name[:200]}")
    given.used.add(found)
    return found
