"""What a policy remembers: a plain value that can be stored, compared and sent.

Memory is None, a boolean, a number, a string, a list, a tuple or a dictionary with string keys of such values, or a NumPy array. `freeze`
checks that; `encode`/`decode` turn it into JSON text and back without loss (NaN and infinities included).
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from itertools import chain, repeat
from typing import Any

import numpy as np

from gantline.core.errors import UsageError

Memory = Any
DEEPEST = 64  # levels of lists and dictionaries within each other
LARGEST = 32 * 2**20  # bytes; a decision is stored with its memory
_AS_THEY_ARE = frozenset((bool, int, str, type(None)))  # JSON holds them without a word about their type
_NUMBERS = frozenset((bool, int, float, type(None)))  # of no size but their place in a list
_LISTS = frozenset((list,))


def check(value: Memory) -> None:
    """Refuse what is not plain, too deep or too large, without copying it or following it down."""
    size, left = 0, [(value, 0)]
    while left:
        item, depth = left.pop()
        if depth > DEEPEST:
            raise UsageError(f"memory is nested more than {DEEPEST} levels deep", fix="keep flat lists and dictionaries")
        inner: Collection[Any] = ()
        if isinstance(item, dict):
            size, inner = size + 64 * len(item), item.values()
            if not all(map(isinstance, item, repeat(str))) or any(map(str.startswith, item, repeat("__"))):
                plain(value)  # names the path
            size += sum(map(len, item))
        elif isinstance(item, (list, tuple)):
            size, inner = size + 16 * len(item), item
        elif isinstance(item, np.ndarray) and item.dtype != object:
            size += item.nbytes
        elif isinstance(item, str):
            size += len(item)
        elif item is not None and not isinstance(item, (bool, int, float, np.integer, np.floating)):
            plain(value)
        kinds = frozenset(map(type, inner))
        if kinds == _LISTS and depth < DEEPEST - 1 and _NUMBERS.issuperset(map(type, chain.from_iterable(inner))):
            size += 16 * sum(map(len, inner))  # of such lists there are as many as jobs
        elif depth == DEEPEST or not kinds <= _NUMBERS:  # numbers by the thousand are common, and need no second look
            left += [(one, depth + 1) for one in inner]
        if size > LARGEST:
            raise UsageError(f"memory is larger than {LARGEST // 2**20} MB", fix="keep what the next decision needs; drop jobs that ended")


def plain(value: Any, path: str = "memory") -> Any:
    """The JSON form of a memory value; raises with the path of the first part that is not plain."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if math.isfinite(number) else {"__float__": repr(number)}
    if isinstance(value, np.ndarray):
        items = value.ravel().tolist()
        if not (value.dtype.kind in "bi" or (value.dtype.kind == "f" and np.isfinite(value).all())):
            items = [plain(v, path) for v in items]
        return {"__array__": items, "dtype": str(value.dtype), "shape": list(value.shape)}
    if isinstance(value, (list, tuple)):
        whole = _AS_THEY_ARE.issuperset(map(type, value))
        items = list(value) if whole else [plain(v, f"{path}[{i}]") for i, v in enumerate(value)]
        return {"__tuple__": items} if isinstance(value, tuple) else items
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key.startswith("__"):
                raise UsageError(
                    f"{path} has the key {key!r}; keys of memory must be plain strings", fix="use str(key) for job ids and the like"
                )
        return {key: plain(v, f"{path}[{key!r}]") for key, v in value.items()}
    raise UsageError(
        f"{path} holds a {type(value).__name__}, which is not a plain value", fix="keep numbers, strings, lists, dicts, arrays"
    )


def restore(value: Any) -> Any:
    """The inverse of `plain`."""
    if isinstance(value, list):
        return [restore(v) for v in value]
    if isinstance(value, dict):
        if "__float__" in value:
            return float(value["__float__"])
        if "__tuple__" in value:
            return tuple(restore(v) for v in value["__tuple__"])
        if "__array__" in value:
            return np.array(restore(value["__array__"]), dtype=value["dtype"]).reshape(value["shape"])
        return {key: restore(v) for key, v in value.items()}
    return value


def encode(value: Memory) -> str:
    """Canonical JSON text of a memory value."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def decode(text: str) -> Memory:
    """The value that `encode` wrote."""
    return restore(json.loads(text))
