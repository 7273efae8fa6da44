"""A mapping that never changes, made from the one before it at the price of what is new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, ValuesView
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Layers(Mapping[Key, Value], Generic[Key, Value]):
    """New entries over the earlier ones; both are read only. Keys stay in the order in which they were added."""

    __slots__ = ("_above", "_below", "_more")

    def __init__(self, below: dict[Key, Value], above: dict[Key, Value]) -> None:
        self._below, self._above = below, above
        self._more = [key for key in above if key not in below]

    def __getitem__(self, key: Key) -> Value:
        found = self._above.get(key)
        return self._below[key] if found is None else found

    def __contains__(self, key: object) -> bool:
        return key in self._above or key in self._below

    def __len__(self) -> int:
        return len(self._below) + len(self._more)

    def __iter__(self) -> Iterator[Key]:
        yield from self._below
        yield from self._more

    def values(self) -> ValuesView[Value]:
        """All values; quicker than one lookup after the other."""
        return {**self._below, **self._above}.values()

    def __reversed__(self) -> Iterator[Key]:
        yield from reversed(self._more)
        yield from reversed(self._below)


class Growing(Generic[Key, Value]):
    """The mapping that one thread writes to; `read_only` is its present state for others. Values are never None."""

    def __init__(self, values: Mapping[Key, Value]) -> None:
        self._below, self._above = dict(values), dict[Key, Value]()

    def __getitem__(self, key: Key) -> Value:
        found = self._above.get(key)
        return self._below[key] if found is None else found

    def __setitem__(self, key: Key, value: Value) -> None:
        self._above[key] = value

    def drop(self, keys: Iterable[Key]) -> None:
        """Remove these; a reader of an earlier mapping still has them."""
        gone = set(keys)
        self._below, self._above = {key: value for key, value in {**self._below, **self._above}.items() if key not in gone}, {}

    def read_only(self) -> Layers[Key, Value]:
        """The present state; new entries are merged into the earlier ones when that is cheap for their number."""
        if len(self._above) > 64 + len(self._below) // 64:
            self._below, self._above = {**self._below, **self._above}, {}
        return Layers(self._below, dict(self._above))
