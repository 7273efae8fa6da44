"""The options of a run as flags of a command: a field per option of `RunSpec`, so that none is written down twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter

from gantline.engine.assembly.spec import OPTIONS, RunOption

Flagged = TypeVar("Flagged", bound=type)


def run_flags(single: bool) -> Callable[[Flagged], Flagged]:
    """Below `@dataclass`: adds a field per option of a run; what is not given is None, and help shows the default.

    A set of flags takes 10 ms to make, so each command has only the class that it needs, and that is made once (no base of its own).
    """

    def add(cls: Flagged) -> Flagged:
        wanted = [known for known in OPTIONS.values() if single or not (known.single or known.name == "seed")]
        cls.__annotations__ = {known.name: _flag(known) for known in wanted} | cls.__annotations__
        for known in wanted:
            setattr(cls, known.name, _shown(known))
        return cls

    return add


def given_flags(flags: object) -> dict[str, Any]:
    """The values of the options of a run; a mistake names the flag."""
    given = {known.name: (known, getattr(flags, known.name)) for known in OPTIONS.values() if hasattr(flags, known.name)}
    return {name: known.read(value, known.flag) for name, (known, value) in given.items() if value is not None}


def _flag(known: RunOption) -> object:
    kind: object = bool if known.default is False else Path | None if known.file and not known.inline else str | None
    return Annotated[kind, Parameter(name=known.flag, negative="", help=known.help)]


def _shown(known: RunOption) -> str | bool | None:
    if known.default in (None, ""):
        return None
    return known.default if isinstance(known.default, (str, bool)) else f"{known.default:g}"
