"""Values as JSON, and JSON from outside, read with a path: a mistake in a hand-written file is named by its place, ``jobs[3].gpus``.

JSON has no NaN and no infinities. Here null is a number that is not known (NaN), and ``"inf"`` and ``"-inf"`` are spelled out.
Dataclasses are objects whose keys are their fields: `encode_record` and `decode_record` know no field by name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from gantline.core.errors import UsageError, near

Record = TypeVar("Record")


def loads(text: str | bytes, *, unique: bool = False) -> Any:
    """The value; what cannot be read is a JSONDecodeError, also if it is nested so deeply that reading would never end.

    `unique`: an object that gives a key twice cannot be read either, because one of the two values would be ignored.
    """
    try:
        return json.loads(text, object_pairs_hook=_each_once if unique else None)
    except RecursionError:
        raise json.JSONDecodeError("it is nested too deeply", "", 0) from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # of a number with thousands of digits
        raise json.JSONDecodeError("a number has too many digits", "", 0) from None


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise json.JSONDecodeError(f"the key '{twice}' is given twice", "", 0)
    return found


def json_number(value: float) -> float | str | None:
    """A float as JSON can hold it."""
    number = float(value)
    if math.isnan(number):
        return None
    return number if math.isfinite(number) else ("inf" if number > 0 else "-inf")


class Reader:
    """One JSON object at a known place."""

    __slots__ = ("_value", "path")

    def __init__(self, value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            raise UsageError(f"is {_kind(value)}, not an object", where=path, fix="write {...}")
        self._value: Mapping[str, Any] = value
        self.path = path

    def __contains__(self, key: str) -> bool:
        return key in self._value

    def only(self, known: Iterable[str]) -> None:
        """Refuse keys that mean nothing: they are mostly misspelled."""
        names = [*known]
        for key in self._value:
            if key not in names:
                raise UsageError(f"unknown key '{key}'", where=self.path, fix=near(str(key), names))

    def raw(self, key: str, default: Any = None) -> Any:
        return self._value.get(key, default)

    def at(self, key: str) -> str:
        """The path of a key."""
        return f"{self.path}.{key}" if self.path else key

    def number(self, key: str, default: float) -> float:
        """A float; null is NaN, ``"inf"`` is infinity."""
        return as_number(self._value[key], self.at(key)) if key in self._value else default

    def whole(self, key: str, default: int | None = None, least: int = 0) -> int:
        """A whole number of at least `least`; without a default it must be there."""
        if key not in self._value and default is not None:
            return default
        return as_whole(self.required(key), self.at(key), least)

    def text(self, key: str, default: str | None = None) -> str:
        return as_text(self._value.get(key, default) if default is not None else self.required(key), self.at(key))

    def flag(self, key: str, default: bool) -> bool:
        return as_flag(self._value.get(key, default), self.at(key))

    def items(self, key: str) -> Iterator[tuple[Any, str]]:
        """The entries of a list, each with its path; nothing where the key is absent."""
        return as_items(self._value.get(key, []), self.at(key))

    def wholes(self, key: str, least: int = 0) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(as_whole(item, path, least) for item, path in self.items(key))

    def texts(self, key: str) -> list[str]:
        found = []
        for item, path in self.items(key):
            if not isinstance(item, str):
                raise UsageError(f"is {_kind(item)}, not text", where=path)
            found.append(item)
        return found

    def required(self, key: str) -> Any:
        """A value that must be there."""
        if key not in self._value:
            raise UsageError(f"'{key}' is missing", where=self.path or "document", fix=f'add "{key}": ...')
        return self._value[key]


@contextmanager
def damaged(where: str, *more: type[Exception]) -> Iterator[None]:
    """What a file of ours holds is decoded inside: whatever is missing, or of another type, is one mistake of that file."""
    kinds: tuple[type[Exception], ...] = (AttributeError, LookupError, ArithmeticError, RecursionError, TypeError, ValueError, *more)
    try:
        yield
    except kinds as error:
        first = str(error).partition("\n")[0][:200]
        raise UsageError(f"is damaged ({type(error).__name__}: {first})", where=where, fix="was the file changed?") from error


def as_number(value: Any, path: str) -> float:
    """A float from its JSON form."""
    if value is None:
        return math.nan
    if value in ("inf", "-inf"):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(f"is {_kind(value)}, not a number", where=path, fix='write a number, null (not known) or "inf"')
    try:
        return float(value)
    except OverflowError:
        raise UsageError("is larger than any number here", where=path, fix='write "inf"') from None


def as_whole(value: Any, path: str, least: int = 0) -> int:
    """A whole number from its JSON form."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0 or value < least:
        raise UsageError(f"is {_kind(value)}, not a whole number of at least {least}", where=path)
    return int(value)


def as_text(value: Any, path: str) -> str:
    """A text from its JSON form."""
    if not isinstance(value, str):
        raise UsageError(f"is {_kind(value)}, not text", where=path, fix='write "..."')
    return value


def as_flag(value: Any, path: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(f"is {_kind(value)}, not true or false", where=path)
    return value


def as_items(value: Any, path: str) -> Iterator[tuple[Any, str]]:
    """The entries of a list, each with its path."""
    if not isinstance(value, list):
        raise UsageError(f"is {_kind(value)}, not a list", where=path, fix="write [...]")
    return ((item, f"{path}[{place}]") for place, item in enumerate(value))


def as_member(kind: type[Enum], value: Any, path: str) -> Any:
    """The member of an enumeration that a word means."""
    known = {member.name.lower(): member for member in kind}
    if value not in known:
        raise UsageError(f"'{value}' is not known", where=path, fix=near(str(value), known))
    return known[value]


def encode(value: Any, *, full: bool = False) -> Any:
    """A number, a text, a member of an enumeration, a record, or several of these, as JSON has it."""
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, Mapping):
        return {key: encode(one, full=full) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [encode(one, full=full) for one in value]
    return encode_record(value, full=full) if is_dataclass(value) else value


def encode_record(record: Any, names: Iterable[str] | None = None, *, full: bool = False) -> dict[str, Any]:
    """A dataclass, or some of its fields, as an object; what is at its default is left out, unless all of it is asked for."""
    kind: Any = type(record)
    found = {}
    for name, (_, default) in _fields(kind).items():
        value = getattr(record, name)
        usual = value is default or value == default or (value != value and default != default)
        if (names is None or name in names) and (full or not usual):
            found[name] = encode(value, full=full)
    return found


def decode(kind: Any, value: Any, path: str, least: int = 0) -> Any:
    """A value of that type from its JSON form; whole numbers are at least `least`."""
    if kind is float:
        return as_number(value, path)
    if kind is int:
        return as_whole(value, path, least)
    if kind is str:
        return as_text(value, path)
    if kind is bool:
        return as_flag(value, path)
    if isinstance(kind, type) and is_dataclass(kind):
        return decode_record(kind, Reader(value, path))
    inner = get_args(kind)
    if get_origin(kind) is UnionType:
        return decode(inner[0], value, path, least)
    if get_origin(kind) is tuple:
        return tuple(decode(inner[0], item, place) for item, place in as_items(value, path))
    if inner:
        reader = Reader(value, path)
        return {key: decode(inner[1], one, reader.at(key)) for key, one in value.items()}
    return as_member(kind, value, path)


def decode_record(kind: Callable[..., Record], reader: Reader, *others: str, **known: Any) -> Record:
    """The dataclass that an object describes. `known` are fields that were read already; `others` are keys which are none."""
    listed = _fields(kind)
    reader.only((*others, *listed))
    for name, (hint, default) in listed.items():
        if name not in known and (name in reader or default is MISSING):
            least = min(default, 0) if isinstance(default, int) else 0
            known[name] = decode(hint, reader.required(name), reader.at(name), least)
    return kind(**known)


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, Any]]:
    """The type and the default of every field."""
    hints = get_type_hints(kind)
    defaults = ((item, item.default_factory() if item.default_factory is not MISSING else item.default) for item in fields(kind))
    return {item.name: (hints[item.name], default) for item, default in defaults}


def check_head(reader: Reader, kind: str, version: int) -> None:
    """Refuse another kind of document, or one from a newer program."""
    found = reader.raw("kind", kind)
    if found != kind:
        raise UsageError(f"is a {found!r}, not a {kind}", where=reader.at("kind"), fix=f'"kind": "{kind}"')
    given = reader.raw("version", version)
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise UsageError(f"is {given!r}", where=reader.at("version"), fix=f"this program reads 1 to {version}")
    if given > version:
        raise UsageError(
            f"is {given}, from a newer Gantline; this one reads up to {version}", where=reader.at("version"), fix="upgrade gantline"
        )


def _kind(value: Any) -> str:
    """A value as a person would name it."""
    if value is None:
        return "null"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    return repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
