"""Pages can be read in a terminal and in a diff: no line of prose has more than 160 characters; code and rows of tables may."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONGEST = 160
MADE = {"docs/benchmark.md", "docs/reproductions.md"}  # written by commands, one paragraph a line


def prose_of(text: str) -> list[tuple[int, str]]:
    """The numbered lines of a page outside of code blocks and tables."""
    found, fence = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if fence:
            fence = "" if word == fence else fence
        elif word.startswith(("```", "~~~")):
            fence = word[: len(word) - len(word.lstrip(word[0]))]
        elif not word.startswith("|"):
            found.append((number, line))
    return found


def test_no_line_of_prose_is_too_long() -> None:
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    long = [
        f"{name}:{number}"
        for name in tracked
        if name not in MADE
        for number, line in prose_of((ROOT / name).read_text(encoding="utf-8"))
        if len(line) > LONGEST
    ]
    assert long == []


def test_code_and_tables_are_no_prose() -> None:
    page = "prose\n```text\ncode\n```\n| a | b |\nmore\n"
    assert prose_of(page) == [(1, "prose"), (6, "more")]
