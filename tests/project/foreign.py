"""Finds what is done to libraries and to Python that they do not offer: private names, replaced attributes, entries of `sys.modules`.

Names are followed through ``import``, ``as`` and attribute access, not through assignments: a fence against slips, not against malice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

OWN = ("gantline", "tests", "benchmarks", "docs", "examples", "__future__")
#: underscored, and described in Python's manual
PUBLIC = {"os._exit", "sys._getframe"}
#: attributes that Python's manual says are there to be set
SETTINGS = {"sys.dont_write_bytecode"}


def foreign_acts(text: str) -> list[tuple[int, str]]:
    """The line and the words for each."""
    nodes = [*ast.walk(ast.parse(text))]
    names = dict(_imported(nodes))
    return sorted({act for node in nodes for act in _acts(node, names)})


def _imported(nodes: list[ast.AST]) -> Iterator[tuple[str, str]]:
    """What names of modules of others, or of things in them, stand for."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                if not _is_own(one.name):
                    yield (one.asname, one.name) if one.asname else (one.name.split(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level and not _is_own(node.module):
            for one in node.names:
                yield one.asname or one.name, f"{node.module}.{one.name}"


def _acts(node: ast.AST, names: dict[str, str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Import):
        yield from ((node.lineno, f"imports {one.name}") for one in node.names if not _is_own(one.name) and _is_private(one.name))
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level and not _is_own(node.module):
        dotted = [f"{node.module}.{one.name}" for one in node.names]
        yield from ((node.lineno, f"imports {one}") for one in dotted if _is_private(one) and one not in PUBLIC)
    elif isinstance(node, ast.Attribute):
        name = _dotted(node, names)
        if name and _is_private(name) and name not in PUBLIC:
            yield node.lineno, f"reads {name}"
        elif name and name not in SETTINGS and not isinstance(node.ctx, ast.Load):
            yield node.lineno, f"replaces {name}"
        if node.attr == "from_address":
            yield node.lineno, "reads memory by its address"
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load) and _dotted(node.value, names) == "sys.modules":
        yield node.lineno, "changes sys.modules"
    elif isinstance(node, ast.Call):
        called = _dotted(node.func, names)
        if called in ("sys.modules.update", "sys.modules.setdefault", "sys.modules.pop"):
            yield node.lineno, "changes sys.modules"
        elif isinstance(node.func, ast.Name) and node.func.id in ("setattr", "delattr", "getattr") and len(node.args) > 1:
            owner, word = _dotted(node.args[0], names), node.args[1]
            if owner and node.func.id != "getattr":
                yield node.lineno, f"replaces an attribute of {owner}"
            elif owner and isinstance(word, ast.Constant) and _is_private(str(word.value)):
                yield node.lineno, f"reads {owner}.{word.value}"


def _dotted(node: ast.AST, names: dict[str, str]) -> str:
    """The full name of what stands there, if it begins with something imported from others."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value, names)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


def _is_own(module: str) -> bool:
    return module.split(".")[0] in OWN


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.endswith("__") for part in name.split("."))
