"""What is searched: ranges and choices of a policy's parameters, checked against their types before anything runs.

On the command line ``threshold=600:36000:log`` is a range, ``service=time,gpu-time`` a choice, ``promote=2`` a value that stays, and
``limits.0=60:3600`` a range for the first number of a list. Choices of lists stand between semicolons: ``limits=3600;3600,36000``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gantline.core.errors import GantlineError, UsageError, near
from gantline.core.policy import parameters
from gantline.lab.experiment.grid import PolicyChoice
from gantline.traces.files.policies import load_policy, opened, policy_class

if TYPE_CHECKING:
    from optuna import Trial

_DIGITS = 5  # of a value that is tried: more would suggest that they matter

_EDGE = 0.02


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    name: str
    low: float
    high: float
    log: bool = False
    whole: bool = False

    def draw(self, trial: Trial) -> str:
        """The value that the optimiser proposes, as it is written."""
        if self.whole:
            return str(trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log))
        value = trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return repr(min(max(float(f"{value:.{_DIGITS}g}"), self.low), self.high))

    def holds(self, text: str) -> float | int | None:
        """The value as the optimiser knows it; None where it is not in the range."""
        try:
            value = float(text)
        except ValueError:
            return None
        return (int(value) if self.whole else value) if self.low <= value <= self.high else None

    def is_edge(self, text: str) -> bool:
        """Whether the value lies within a fiftieth of the range from one of its ends."""
        low, value, high = (math.log(x) if self.log else x for x in (self.low, float(text), self.high))
        return min(value - low, high - value) < _EDGE * (high - low)

    def __str__(self) -> str:
        return f"{self.low:g}:{self.high:g}{':log' if self.log else ''}"


@dataclass(frozen=True)
class Choices:
    """One of these values."""

    name: str
    values: tuple[str, ...]

    def draw(self, trial: Trial) -> str:
        """The value that the optimiser proposes."""
        return str(trial.suggest_categorical(self.name, self.values))

    def holds(self, text: str) -> str | None:
        """The value, if it is one of them."""
        return text if text in self.values else None

    def __str__(self) -> str:
        return ";".join(self.values)


@dataclass(frozen=True)
class SearchSpace:
    """A policy, what is searched of it, and what stays."""

    policy: str
    searched: tuple[Range | Choices, ...]
    fixed: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What the policy calls itself."""
        return PolicyChoice(self.policy).title

    def draw(self, trial: Trial) -> dict[str, str]:
        """The settings of a trial."""
        return self._joined({one.name: one.draw(trial) for one in self.searched})

    def usual(self) -> dict[str, Any] | None:
        """The settings as they are, as the optimiser knows them; None where they lie outside of what is searched."""
        policy = load_policy(self.policy, self.fixed)
        found: dict[str, Any] = {}
        for one in self.searched:
            name, _, place = one.name.partition(".")
            value = getattr(policy, name)
            if place:
                value = value[int(place)] if isinstance(value, tuple) and len(value) == len(self._parts(name)) else None
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            held = one.holds(text)
            if held is None:
                return None
            found[one.name] = held
        return found

    def _parts(self, name: str) -> list[str]:
        return [one.name for one in self.searched if one.name.startswith(f"{name}.")]

    def _joined(self, drawn: Mapping[str, str]) -> dict[str, str]:
        """Numbers of a list put together again."""
        found = dict(self.fixed)
        for name, text in drawn.items():
            whole, dot, _ = name.partition(".")
            found[whole] = f"{found[whole]},{text}" if dot and whole in found else text
        return found

    def to_dict(self) -> dict[str, Any]:
        """The key by which one search differs from another."""
        return {"policy": self.policy, "searched": {one.name: str(one) for one in self.searched}, "fixed": dict(self.fixed)}


def read_space(policy: str, given: Mapping[str, Any], where: str = "--set") -> SearchSpace:
    """What to search of a policy.

    Values are as on the command line; from Python also (low, high), (low, high, "log") and lists of choices.
    """
    name, kept = opened(policy)
    kinds = {one.name: one.type for one in parameters(policy_class(name))}
    searched: list[Range | Choices] = []
    fixed = dict(kept)
    for parameter, value in given.items():
        whole, dot, place = parameter.partition(".")
        if whole not in kinds:
            fix = near(whole, kinds) if kinds else "it has no parameters"
            raise UsageError(f"policy '{name}' has no parameter '{whole}'", where=where, fix=fix)
        kind = kinds[whole]
        if dot and not (kind.startswith("tuple[") and place == str(sum(one.name.startswith(f"{whole}.") for one in searched))):
            raise UsageError(f"'{parameter}' names no number of a list", where=where, fix=f"'{whole}' is a {kind}; count from .0, in order")
        found = _read(parameter, kind.removeprefix("tuple[").partition(",")[0] if dot else kind, value, f"{where} {parameter}")
        fixed.pop(whole, None)
        if isinstance(found, str):
            fixed[whole] = found
        else:
            searched.append(found)
    if not searched:
        raise UsageError("there is nothing to search", where=where, fix="give a range, NAME=LOW:HIGH or NAME=LOW:HIGH:log, or NAME=A,B")
    space = SearchSpace(name, tuple(searched), fixed)
    _try_ends(space, where)
    return space


def _read(name: str, kind: str, value: Any, where: str) -> Range | Choices | str:
    listed, numeric = kind.startswith("tuple["), kind.split(" | ")[0] in ("int", "float")
    if isinstance(value, tuple) and numeric:
        value = ":".join(map(str, value))
    if isinstance(value, (list, tuple)):
        values = [",".join(map(str, one)) if isinstance(one, (list, tuple)) else str(one) for one in value]
        return _choices(name, [",".join(values)] if listed and isinstance(value, tuple) else values, where)
    text = str(value).strip()
    if ":" in text and not numeric:
        fix = f"list its values, {name}=A;B" + (f", or give {name}.0=LOW:HIGH" if listed else "")
        raise UsageError(f"'{text}' is a range, and '{name}' is a {kind}", where=where, fix=fix)
    if ":" in text:
        return _range(name, kind, text, where)
    return _choices(name, [part.strip() for part in text.split(";" if ";" in text or listed else ",")], where)


def _choices(name: str, values: Sequence[str], where: str) -> Choices | str:
    if not values or any(not value for value in values):
        raise UsageError("has a value that is empty", where=where, fix=f"write {name}=A,B")
    if len(set(values)) < len(values):
        twice = next(value for value in values if list(values).count(value) > 1)
        raise UsageError(f"names '{twice}' twice", where=where, fix="give each once")
    return values[0] if len(values) == 1 else Choices(name, tuple(values))


def _range(name: str, kind: str, text: str, where: str) -> Range:
    low, high, *more = text.split(":")
    fix = f"write {name}=LOW:HIGH or {name}=LOW:HIGH:log"
    whole = kind.startswith("int")
    try:
        ends = [int(end) if whole else float(end) for end in (low, high)]
    except ValueError:
        raise UsageError(f"'{text}' is not a range of {'whole ' if whole else ''}numbers", where=where, fix=fix) from None
    if more not in ([], ["log"]):
        raise UsageError(f"'{':'.join(more)}' is not 'log'", where=where, fix=fix)
    if not all(map(math.isfinite, ends)) or not ends[0] < ends[1]:
        raise UsageError(f"the range '{text}' is empty", where=where, fix="the first end lies below the second, and both are numbers")
    if more and ends[0] <= 0:
        raise UsageError(f"a logarithmic range begins above 0, not at {low}", where=where, fix=f"write {name}={low}:{high}, or another end")
    return Range(name, float(ends[0]), float(ends[1]), bool(more), whole)


def _try_ends(space: SearchSpace, where: str) -> None:
    """Refuse what the policy itself refuses: an end of a range, or a choice."""
    for one in space.searched:
        if "." in one.name:
            continue  # whether a list is in order depends on its other numbers
        for text in _ends(one):
            try:
                load_policy(space.policy, {**space.fixed, one.name: text})
            except GantlineError as error:
                raise UsageError(f"the policy refuses {one.name}={text}: {error.what}", where=where, fix=error.fix) from None


def _ends(one: Range | Choices) -> Iterator[str]:
    if isinstance(one, Choices):
        yield from one.values
    else:
        yield from (str(int(end)) if one.whole else repr(end) for end in (one.low, one.high))
