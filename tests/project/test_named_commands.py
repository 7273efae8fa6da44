"""Messages and pages name commands that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from cyclopts import App

from gantline.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"(?:^|[`'\"(:;,] ?|\$ |run |use |try )gantline ((?:[a-z][a-z-]+)(?: [a-z][a-z-]+)?)")
SOURCES = sorted((ROOT / "src" / "gantline").rglob("*.py"))


@cache
def known() -> dict[str, frozenset[str]]:
    """Command -> the commands below it; none: it takes arguments."""
    return {"help": frozenset(), **{name: frozenset(_below(name)) for name in COMMANDS}}


def _below(name: str) -> Iterator[str]:
    place, _, attribute = COMMANDS[name].partition(":")
    app = getattr(import_module(place), attribute)
    if isinstance(app, App) and app.default_command is None:
        yield from (each for each in app if not each.startswith("-"))


def texts(file: Path) -> Iterator[str]:
    """Every literal of a source file."""
    text = file.read_text(encoding="utf-8")
    if "gantline " not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def unknown(text: str) -> list[str]:
    """Commands that a text names and that do not exist; a second word counts where the first has commands of its own."""
    found = []
    for match in NAMED.finditer(text):
        first, _, second = match[1].partition(" ")
        if first not in known() or (second and known()[first] and second not in known()[first] and f"gantline {first} {second}" in text):
            found.append(match[1])
    return found


def test_messages_name_commands_that_exist() -> None:
    wrong = {f"{file.relative_to(ROOT)}: gantline {name}" for file in SOURCES for text in texts(file) for name in unknown(text)}
    assert not wrong


@pytest.mark.parametrize("text", ["(use gantline frobnicate)", "`gantline trace konvert`"])
def test_a_command_that_does_not_exist_is_found(text: str) -> None:
    assert unknown(text)
