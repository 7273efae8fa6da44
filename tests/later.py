"""Which tests wait for the long run: `later.txt` names them, `make later` chooses them, `make strength` shows what that costs.

What is not in the list runs at every change, so that a new test does. Others reach what a test that waits reaches, but for a few branches.
Whoever names files, folders or words of tests gets all of them; `pytest --later` runs them, too, with as few examples as at every change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LIST = TESTS / "later.txt"


def names_that_wait() -> set[str]:
    """Test functions, as pytest names them without their cases."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def defined_in(path: str) -> set[str]:
    """The test functions of a file, which may be gone, as pytest names them."""
    file = TESTS.parent / path
    found = set()
    for node in ast.parse(file.read_bytes()).body if file.exists() else []:
        if isinstance(node, ast.FunctionDef):
            found.add(f"{path}::{node.name}")
        elif isinstance(node, ast.ClassDef):
            found |= {f"{path}::{node.name}::{method.name}" for method in node.body if isinstance(method, ast.FunctionDef)}
    return found


def function_of(test: str) -> str:
    """The name of a test without its case."""
    return test.partition("[")[0]


def tests_that_wait(config: pytest.Config, items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Of these tests, when all of them are asked for."""
    if _some_are_asked_for(config):
        return set()
    waiting = names_that_wait()
    return {item for item in items if function_of(item.nodeid) in waiting}


def _some_are_asked_for(config: pytest.Config) -> bool:
    named = {(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args}
    every = config.option.later or config.option.keyword or config.option.markexpr
    return bool(every or named - {TESTS, TESTS.parent})
