"""The pages that are written from the code, and lists of pages that must be whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest
from cyclopts import App, Parameter

import gantline

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def extensions_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/_ext is no package: Sphinx puts it on the path, and so do these tests."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")


@pytest.fixture
def tiny_app() -> App:
    """A program with a command, a group of two, an alias and a hidden command."""
    app = App(name="tiny", help="A program for tests.")
    group = App(name="policy", help="Ask about policies.")
    app.command(group)

    @app.command(name=["simulate", "sim"])
    def simulate(trace: str, *, cluster: Annotated[str, Parameter(help="Nodes x GPUs, as in `8x4`.")] = "8x4") -> None:
        """Replay a trace."""

    @group.command
    def show(name: str) -> None:
        """Show one policy, its {parameters} and ```quotes```."""

    @group.command(name="list")
    def list_() -> None:
        """List all policies."""

    @app.command(show=False)
    def secret() -> None:
        """Nobody should read this."""

    return app


def test_each_command_has_a_page_and_subcommands_are_sections(tiny_app: App) -> None:
    from cli_reference import pages

    found = pages(tiny_app)
    assert set(found) == {"index.md", "simulate.md", "policy.md"}
    assert "# `tiny simulate`" in found["simulate.md"]
    assert "--cluster" in found["simulate.md"]
    assert "Nodes x GPUs" in found["simulate.md"]
    assert "## `tiny policy show`" in found["policy.md"]
    assert "## `tiny policy list`" in found["policy.md"]
    assert "\x1b[" not in "".join(found.values()), "no colour codes in pages"


def test_the_index_lists_the_pages_and_the_exit_codes(tiny_app: App) -> None:
    from cli_reference import pages

    index = pages(tiny_app)["index.md"]
    assert index.rstrip().endswith("policy\nsimulate\n```")
    assert "| 4 | refused" in index


def test_help_with_backquotes_cannot_end_its_block() -> None:
    from cli_reference import fenced

    assert fenced("a ``` b") == "````text\na ``` b\n````"


def test_generated_folders_follow_the_code(tmp_path: Path) -> None:
    from generated_pages import write_pages

    write_pages(tmp_path, {"old.md": "old", "kept.md": "same"})
    before = (tmp_path / "kept.md").stat().st_mtime_ns
    write_pages(tmp_path, {"new.md": "new", "kept.md": "same"})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.md", "new.md"]
    assert (tmp_path / "kept.md").stat().st_mtime_ns == before


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    named = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert named == set(gantline.__all__)


def test_every_page_of_a_policy_is_in_the_table_of_policies() -> None:
    table = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs" / "policies").glob("*.md")} - {"writing.md"}
    assert set(re.findall(r"\]\(policies/([\w-]+\.md)\)", table)) == pages


def test_a_former_name_still_works_and_is_not_offered() -> None:
    assert gantline.about is gantline.param
    assert "about" not in {*gantline.__all__, *dir(gantline)}
