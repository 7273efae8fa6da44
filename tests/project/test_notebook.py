"""The example notebook runs from top to bottom, and what its cells end with shows itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "first_hour.ipynb"


def shown(source: str, namespace: dict[str, Any]) -> Any:
    """Run a cell; the value of its last expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), namespace) if last is not None else None


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"), "stored without results"
    namespace: dict[str, Any] = {"__name__": "notebook"}
    pictures = tables = 0
    for cell in cells:
        value = shown(cell, namespace)
        pictures += hasattr(value, "_repr_svg_") and "<svg" in value._repr_svg_()
        tables += hasattr(value, "_repr_html_") and "<table" in value._repr_html_()
    assert (pictures, tables) == (4, 3)
