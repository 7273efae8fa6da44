"""Reads the code blocks of a Markdown page, together with the comment that stands directly before each.

Three comments say what to do with the block that follows:

* ``<!-- not run: needs a GPU -->``: leave it out, for the given reason;
* ``<!-- file: mine.py -->``: save it under this name in the page's folder instead of running it;
* ``<!-- exit: 3 -->``: the last command of the block is meant to fail with this code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

RUNNABLE = ("python", "console", "bash")
OTHER_SPELLINGS = (
    "py",
    "python3",
    "pycon",
    "ipython",
    "doctest",
    "sh",
    "shell",
    "zsh",
    "shell-session",
    "bash-session",
)

_COMMENT = re.compile(r"<!--\s*(?P<key>not run|file|exit)\s*:\s*(?P<value>.*?)\s*-->\s*", re.DOTALL)
_DIRECTIVE = re.compile(r"\{(?:code-block|code|sourcecode|doctest)\}\s*(?P<language>\S*)")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, the page's line of its first line, and the comment before it."""

    language: str
    text: str
    line: int
    orders: dict[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        return self.language in RUNNABLE and "not run" not in self.orders and "file" not in self.orders


def pages(root: Path) -> list[Path]:
    """The pages whose blocks are run: README, CONTRIBUTING, docs, the READMEs of packages and examples."""
    generated = {root / "docs" / name for name in ("_build", "api", "cli")}
    found = [root / "README.md", root / "CONTRIBUTING.md"]
    found += (root / "docs").rglob("*.md")
    for folder in ("src", "examples", "benchmarks"):
        found += (root / folder).rglob("README.md")
    return sorted(page for page in found if page.exists() and not generated.intersection(page.parents))


@cache
def blocks(markdown: str) -> tuple[Block, ...]:
    """The fenced blocks of a page, in order; what stands within its paragraphs is not parsed."""
    found: list[Block] = []
    orders: dict[str, str] = {}
    for token in MarkdownIt().disable("inline").parse(markdown):
        if token.type == "html_block":
            orders = orders | {match["key"]: match["value"] for match in _COMMENT.finditer(token.content)}
        elif token.type == "fence":
            directive = _DIRECTIVE.match(token.info)
            language = directive["language"] if directive else token.info.split(" ")[0]
            found.append(Block(language, token.content, token.map[0] + 2, orders))
            orders = {}
        else:
            orders = {}
    return tuple(found)
