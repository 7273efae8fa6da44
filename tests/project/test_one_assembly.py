"""Runs are put together in one place: no other file of the package makes a state or an engine."""

from __future__ import annotations

import ast
from pathlib import Path

import gantline

SOURCE = Path(gantline.__file__).parent
MADE = {"State", "Engine"}


def makers(root: Path) -> list[str]:
    """FILE:LINE of every call of these names."""
    found = []
    for file in sorted(root.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if not any(f"{name}(" in text for name in MADE):  # reading a tree takes a hundred times as long
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if name in MADE:
                    found.append(f"{file.relative_to(root)}:{node.lineno}")
    return found


def test_only_the_assembly_makes_states_and_engines() -> None:
    found = makers(SOURCE)
    assert {place.partition(":")[0] for place in found} == {"engine/assembly/run_rules.py"}


def test_a_planted_one_is_found(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.py").write_text("from gantline.engine import state\n\nmade = state.State(tables)\n")
    assert makers(tmp_path) == ["elsewhere.py:3"]
