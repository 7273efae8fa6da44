"""What several tests count in the sources of the package: each file is parsed and walked once for all of them.

The trees are not kept: millions of nodes would slow every collection of garbage in the tests that follow.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import gantline

SOURCE = Path(gantline.__file__).parent


@dataclass(frozen=True)
class Source:
    """What one file says; `place` is its path in the package."""

    place: str
    any_named: int  # how often `Any` is named, imports left out
    parameters: tuple[tuple[str, int], ...]  # of each function, without `self` and `cls`
    imported: tuple[tuple[str, str], ...]  # modules, and the names that are taken from each; "" for the module itself

    @property
    def module(self) -> str:
        return ".".join(("gantline", *Path(self.place).with_suffix("").parts)).removesuffix(".__init__")

    @classmethod
    def of(cls, place: str, text: str) -> Source:
        tree = ast.parse(text)
        any_named = _any_named(tree, text)
        parameters, imported = [], []
        for node in _statements(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
                parameters.append((node.name, len([name for name in names if name not in ("self", "cls")])))
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported += [(node.module, one.name) for one in node.names]
            elif isinstance(node, ast.Import):
                imported += [(one.name, "") for one in node.names]
        return cls(place, any_named, tuple(parameters), tuple(imported))


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement, however deep; most nodes of a tree are parts of expressions, which are not visited."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        left += (part for field in ("body", "orelse", "finalbody", "handlers", "cases") for part in _listed(node, field))
        yield node


def _listed(node: ast.AST, field: str) -> list[ast.AST]:
    found = getattr(node, field, None)
    return found if isinstance(found, list) else []


def _any_named(tree: ast.Module, text: str) -> int:
    """How often `Any` is named; nodes on whose lines it does not stand are not visited."""
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "Any" in line]
    found, left = 0, list[ast.AST](tree.body)
    while left and lines:
        node = left.pop()
        first = min((part.lineno for part in (node, *getattr(node, "decorator_list", ())) if hasattr(part, "lineno")), default=0)
        if first and bisect_left(lines, first) == bisect_right(lines, node.end_lineno):
            continue
        found += (isinstance(node, ast.Name) and node.id == "Any") or (isinstance(node, ast.Attribute) and node.attr == "Any")
        left += ast.iter_child_nodes(node)
    return found


@cache
def sources() -> tuple[Source, ...]:
    """Every file of the package."""
    return tuple(Source.of(file.relative_to(SOURCE).as_posix(), file.read_text(encoding="utf-8")) for file in sorted(SOURCE.rglob("*.py")))
