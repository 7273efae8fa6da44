"""Options that a runner has of its own: ``gantline up --executor ray --ray-address ADDR``. Imports nothing, because help does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gantline.core.errors import UsageError, near


@dataclass(frozen=True, slots=True)
class RunnerOption:
    """An option with a value; where it is not given it is as at the previous start, else its default."""

    name: str  # as on the command line, without the dashes
    help: str
    default: str | None = None
    choices: tuple[str, ...] = ()  # none: any text


def checked(given: Mapping[str, str], declared: Sequence[RunnerOption], executor: str) -> dict[str, str]:
    """The given options; one that the runner does not have, and a value that it does not take, are refused."""
    known = {option.name: option for option in declared}
    for name, value in given.items():
        if name not in known:
            fix = near(f"--{name}", [f"--{one}" for one in known]) if known else "leave it out, or choose the executor that has it"
            raise UsageError(f"executor '{executor}' has no such option", where=f"--{name}", fix=fix)
        if known[name].choices and value not in known[name].choices:
            raise UsageError(f"'{value}' is none of its values", where=f"--{name}", fix=f"use {', '.join(known[name].choices)}")
    return {name: str(value) for name, value in given.items()}


def completed(given: Mapping[str, str], before: Mapping[str, str], declared: Sequence[RunnerOption]) -> dict[str, str]:
    """A value for each option that has one: as given now, else as at an earlier start, else its default."""
    usual = {option.name: option.default for option in declared if option.default is not None}
    kept = {name: value for name, value in before.items() if any(option.name == name for option in declared)}
    return {**usual, **kept, **given}
