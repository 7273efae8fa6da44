"""Runs the blocks of one page as a reader would: in order, in one folder, Python blocks in one namespace."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tests.project.pages import Block, blocks


class PageError(AssertionError):
    """A block that does not do what its page says."""


def run_page(markdown: str, name: str) -> int:
    """Run a page in the present folder and return how many blocks ran."""
    ran = 0
    with _namespace() as module:
        for block in blocks(markdown):
            place = f"{name}:{block.line}"
            if "file" in block.orders:
                Path(block.orders["file"]).parent.mkdir(parents=True, exist_ok=True)
                Path(block.orders["file"]).write_text(block.text, encoding="utf-8")
            if not block.runs:
                continue
            if block.language == "python":
                _run_python(block, module, name, place)
            else:
                _run_console(block, place)
            ran += 1
    return ran


@contextlib.contextmanager
def _namespace() -> Iterator[ModuleType]:
    """A module that Python blocks share; it is registered because dataclasses look their module up by name."""
    module = ModuleType("page")
    sys.modules["page"] = module
    try:
        yield module
    finally:
        del sys.modules["page"]


def _run_python(block: Block, module: ModuleType, name: str, place: str) -> None:
    source = "\n" * (block.line - 1) + block.text  # so that a traceback shows the page's own line numbers
    try:
        exec(compile(source, name, "exec"), module.__dict__)
    except Exception as error:
        raise PageError(f"{place}: the Python block fails: {type(error).__name__}: {error}") from error


def _run_console(block: Block, place: str) -> None:
    commands = command_lines(block)
    if not commands:
        raise PageError(f"{place}: no command in the block; begin commands with '$ ', or call the block 'text'")
    for number, line in enumerate(commands):
        expected = int(block.orders.get("exit", "0")) if number == len(commands) - 1 else 0
        code, errors = run_command(line, place)
        if code != expected:
            raise PageError(f"{place}: `{line}` ended with code {code}, not {expected}\n{errors}")


def command_lines(block: Block) -> list[str]:
    """The commands of a block: after ``$`` in a console, every line but comments in a bash block."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        return [line[2:].strip() for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def run_command(line: str, place: str) -> tuple[int, str]:
    """Run one ``gantline`` command in this process; returns its exit code and what it said on stderr."""
    words = shlex.split(line, comments=True)
    target = None
    if len(words) > 2 and words[-2] == ">":
        target, words = Path(words[-1]), words[:-2]
    if words[0] != "gantline" or {"|", "&&", ";", "<", ">", ">>"}.intersection(words):
        raise PageError(f"{place}: `{line}` is not a plain gantline command; put <!-- not run: REASON --> directly before the block")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _gantline(words[1:])
    if target is not None:
        target.write_text(out.getvalue(), encoding="utf-8")
    return code, err.getvalue()


def _gantline(arguments: list[str]) -> int:
    from gantline.cli.main import main

    try:
        result: object = main(
            arguments
        )  # as tokens: a program of its own would run files of policies in a child, and the child would be pytest
    except SystemExit as leaving:
        result = leaving.code
    if result is None:
        return 0
    return result if isinstance(result, int) else 1
