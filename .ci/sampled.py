"""Defects found by rule rather than by hand: one operator, one constant, one statement of a file changed at a time."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path

_COMPARED = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
_COMPUTED = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+")}
_BOTH = {ast.And: ("and", "or"), ast.Or: ("or", "and")}

Change = tuple[int, str, str]  # where, what, instead


def changes(path: Path) -> list[Change]:
    """Every defect that can be planted in the functions of a file."""
    text = path.read_text(encoding="utf-8")
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw = text.encode()

    def at(node: ast.expr | ast.stmt, end: bool = False) -> int:
        line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)
        assert line is not None
        assert column is not None
        return starts[line - 1] + column

    def between(left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Change]:
        first, last = at(left, end=True), at(right)
        place = raw[first:last].find(old.encode())
        if place >= 0:
            yield first + place, old, new

    def planted(node: ast.AST) -> Iterator[Change]:
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            yield from between(node.left, node.comparators[0], *_COMPARED[type(node.ops[0])])
        elif isinstance(node, ast.BinOp) and type(node.op) in _COMPUTED:
            yield from between(node.left, node.right, *_COMPUTED[type(node.op)])
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1], *_BOTH[type(node.op)])
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield at(node), str(node.value), str(not node.value)
        elif isinstance(node, ast.Assign | ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            old = raw[at(node) : at(node, end=True)].decode()
            if isinstance(node, ast.AugAssign | ast.Expr) or isinstance(node.targets[0], ast.Subscript):
                yield at(node), old, "pass"

    found: list[Change] = []
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    found += planted(node)
    return sorted(set(found))


def sample(paths: list[Path], count: int, seed: int) -> list[tuple[Path, Change]]:
    """So many of them, drawn from all files alike; the same for the same seed and sources."""
    every = [(path, change) for path in paths for change in changes(path)]
    return random.Random(seed).sample(every, min(count, len(every)))
