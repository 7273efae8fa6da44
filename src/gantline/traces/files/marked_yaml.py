"""YAML from files: with its lines, so that a mistake can be shown where it was made, and small when its aliases are written out.

Nine lines of aliases of aliases can mean a thousand million values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from gantline.core.errors import GantlineError, TraceError, UsageError

MOST_VALUES = 100_000


def composed(loader: yaml.SafeLoader, where: str) -> yaml.Node | None:
    """The one document of a loader, not yet turned into values; refused where its aliases would multiply, or a key is given twice."""
    node: yaml.Node | None = loader.get_single_node()
    if node is not None and _written_out(node, {}, where) > MOST_VALUES:
        raise UsageError(
            f"has more than {MOST_VALUES:,} values when its aliases are written out", where=where, fix="write it without aliases"
        )
    return node


def _written_out(node: yaml.Node, known: dict[int, int], where: str) -> int:
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


def _check_keys(keys: list[yaml.Node], where: str) -> None:
    """Of two values under one key one would be ignored."""
    known: set[str] = set()
    for key in keys:
        if isinstance(key.value, str):
            if key.value in known:
                raise UsageError(
                    f"the key '{key.value}' is given twice", where=f"{where}:{key.start_mark.line + 1}", fix="keep one of them"
                )
            known.add(key.value)


Path = tuple[str | int, ...]
_PLAIN = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_QUOTED = re.compile(r"'([^']*)'")


class Loader(yaml.SafeLoader):
    """The safe loader without the numbers to base sixty of YAML 1.1: ``2:8`` is a range, not 128."""


Loader.yaml_implicit_resolvers = {
    sign: [(tag, pattern) for tag, pattern in resolvers if tag not in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")]
    for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]*|[1-9][0-9_]*)$"), list("-+0123456789")
)
Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(?:(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|^\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


@dataclass(frozen=True)
class Marked:
    """A document: its value, and the line of each key and item."""

    value: Any
    lines: dict[Path, int]
    name: str

    def where(self, path: Path) -> str:
        """The place of a value: file, line and field."""
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        field = ".".join(map(str, path))
        return f"{self.name}:{self.lines.get(known, 1)}" + (f": field '{field}'" if field else "")

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Errors from inside are errors of the value at this path, or of the value below it that they name."""
        try:
            yield
        except GantlineError as error:
            if error.where.startswith(f"{self.name}:"):
                raise
            found = self._named(path, error)
            inner = error.where if found == path and error.where not in ("", *map(str, path[-1:])) else ""
            what = f"{inner}: {error.what}" if inner else error.what
            raise _again(error, what, self.where(found)) from None

    def _named(self, path: Path, error: GantlineError) -> Path:
        """The deepest path below this one whose last key the error mentions."""
        words = {*_QUOTED.findall(f"{error.where} {error.what}"), *re.split(r"[:.]\s*", error.where)}
        below = [known for known in self.lines if known[: len(path)] == path and len(known) > len(path) and str(known[-1]) in words]
        return max(below, key=len, default=path)


def load_marked(text: str, name: str) -> Marked:
    """Read one document with the safe loader; refuses broken YAML and keys that stand twice."""
    loader = None
    try:
        loader = Loader(text)
        node = composed(loader, name)
        lines: dict[Path, int] = {}
        value = _build(loader, node, (), lines, name) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{name}:{mark.line + 1}" if mark is not None else name
        problem = getattr(error, "problem", None) or "not YAML"
        raise UsageError(f"broken YAML: {problem}", where=place, fix="check indentation, colons and brackets there") from None
    except RecursionError:
        raise UsageError("the YAML is nested too deeply", where=name, fix="a few levels are enough") from None
    finally:
        if loader is not None:
            loader.dispose()
    return Marked(value, lines, name)


def _build(loader: Loader, node: yaml.Node, path: Path, lines: dict[Path, int], name: str) -> object:
    if node.tag not in _PLAIN:
        return loader.construct_object(node, deep=True)  # a text, a number, or a tag that the safe loader refuses
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        found: dict[object, object] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if isinstance(key, bool):
                key = key_node.value  # as a key, `on` means on
            line = key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise UsageError(f"the key {key!r} is not a text", where=f"{name}:{line}", fix="put it in quotes")
            if key in found:
                raise UsageError(f"the key '{key}' stands twice", where=f"{name}:{line}", fix="keep one of them")
            lines[(*path, key)] = line
            found[key] = _build(loader, value_node, (*path, key), lines, name)
        return found
    items = []
    for index, item in enumerate(node.value):
        lines[(*path, index)] = item.start_mark.line + 1
        items.append(_build(loader, item, (*path, index), lines, name))
    return items


def _again(error: GantlineError, what: str, where: str) -> GantlineError:
    """The same kind of error with another place; a trace's error names a file and is reported as one of usage."""
    kind = UsageError if isinstance(error, TraceError) else type(error)
    return kind(what, where=where, fix=error.fix)
