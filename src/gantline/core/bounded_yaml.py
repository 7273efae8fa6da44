"""YAML that stays small when its aliases are written out: nine lines of aliases of aliases can mean a thousand million values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

MOST_VALUES = 100_000


def composed(loader: SafeLoader, where: str) -> Node | None:
    """The one document of a loader, not yet turned into values; refused where its aliases would multiply, or a key is given twice."""
    node: Node | None = loader.get_single_node()
    if node is not None and _written_out(node, {}, where) > MOST_VALUES:
        raise UsageError(
            f"has more than {MOST_VALUES:,} values when its aliases are written out", where=where, fix="write it without aliases"
        )
    return node


def _written_out(node: Node, known: dict[int, int], where: str) -> int:
    """How many values a node means; each node is counted once, however often it is named."""
    count = known.get(id(node))
    if count == 0:
        raise UsageError("an alias stands inside of what it names", where=where, fix="write it without aliases")
    if count is None:
        known[id(node)] = 0  # it is being counted
        inner: Any = node.value if isinstance(node.value, list) else ()
        _check_keys([one[0] for one in inner if isinstance(one, tuple)], where)
        below = [child for one in inner for child in (one if isinstance(one, tuple) else (one,))]
        count = known[id(node)] = 1 + sum(_written_out(child, known, where) for child in below)
    return count


def _check_keys(keys: list[Node], where: str) -> None:
    """Of two values under one key one would be ignored."""
    known: set[str] = set()
    for key in keys:
        if isinstance(key.value, str):
            if key.value in known:
                raise UsageError(
                    f"the key '{key.value}' is given twice", where=f"{where}:{key.start_mark.line + 1}", fix="keep one of them"
                )
            known.add(key.value)
