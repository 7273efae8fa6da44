"""No two files of a room lean on each other, not even through one another, nor for the sake of a type."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import gantline

SOURCE = Path(gantline.__file__).parent


def imports(room: str) -> dict[str, set[str]]:
    """Which files of the room each of them imports, wherever in the file, and also what only type checkers read."""
    files = {
        ".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (SOURCE / room).rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for name, file in files.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    file_of_package = f"{node.module}.{one.name}"
                    named.add(file_of_package if file_of_package in files else node.module)
            elif isinstance(node, ast.Import):
                named |= {one.name for one in node.names}
        found[name] = (named & files.keys()) - {name}
    return found


ROOMS = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file())


@pytest.mark.parametrize("room", ROOMS)
def test_imports_within_a_room_go_round_in_no_circle(room: str) -> None:
    found = imports(room)
    assert len(list(TopologicalSorter(found).static_order())) >= len(found)  # raises CycleError, which names the circle
