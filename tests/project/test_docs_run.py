"""Every code block that a reader may copy from README and docs really runs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.live.service.conftest import serve_here
from tests.project import page_runner
from tests.project.page_runner import PageError, command_lines, run_command, run_page
from tests.project.pages import OTHER_SPELLINGS, RUNNABLE, Block, blocks, pages
from tests.project.samples import write_run_sample, write_samples

ROOT = Path(__file__).parents[2]
PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages(ROOT)}
RUNNABLE_PAGES = [name for name, page in PAGES.items() if any(b.runs for b in blocks(page.read_text(encoding="utf-8")))]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's programs, of which `sleep` sleeps for a tenth of its time."""
    place = tmp_path_factory.mktemp("quick")
    (place / "sleep").write_text('#!/bin/sh\nPATH=${PATH#*:} exec sleep "0.$1"\n', encoding="utf-8")
    (place / "sleep").chmod(0o755)
    return place


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_scenario: None, quick: Path) -> Iterator[Path]:
    """An empty folder with the sample files, where the page's commands run."""
    write_samples(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GANTLINE_HOME", str(tmp_path / "home"))
    places = [quick, Path(sys.executable).parent, os.environ["PATH"]]  # the reader's environment is active
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, places)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})  # sweeps then run here: starting workers takes longer than their runs
    monkeypatch.setattr(import_module("gantline.cli.live.up"), "_detach", serve_here)
    yield tmp_path
    if (tmp_path / "home" / "address.json").exists():  # a page that failed half-way must not leave a service behind
        run_command("gantline down", "after the page")


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished run that every page finds beside it."""
    place = tmp_path_factory.mktemp("stored")
    write_samples(place)
    write_run_sample(place)
    return place / "run"


@pytest.mark.parametrize("name", RUNNABLE_PAGES)
def test_the_blocks_of_a_page_run(name: str, folder: Path, stored_run: Path) -> None:
    if name == "README.md":  # whoever reads it first has an empty folder
        shutil.rmtree(folder)
        folder.mkdir()
        os.chdir(folder)
    else:
        shutil.copytree(stored_run, folder / "run")
    assert run_page(PAGES[name].read_text(encoding="utf-8"), name) > 0


def test_blocks_that_are_not_run_say_why_and_are_few() -> None:
    skipped, total = [], 0
    for name, page in PAGES.items():
        for block in blocks(page.read_text(encoding="utf-8")):
            total += block.language in RUNNABLE
            if "not run" in block.orders:
                skipped.append(f"{name}:{block.line}")
                assert len(block.orders["not run"].split()) >= 3, f"{name}:{block.line}: give the reason in words"
    assert 3 * len(skipped) <= total, f"{len(skipped)} of {total} blocks are not run: {', '.join(skipped)}"


def test_no_block_escapes_under_another_name() -> None:
    for name, page in PAGES.items():
        for block in blocks(page.read_text(encoding="utf-8")):
            assert block.language not in OTHER_SPELLINGS, f"{name}:{block.line}: write {RUNNABLE} for '{block.language}'"


def test_python_blocks_share_a_namespace_and_files(folder: Path) -> None:
    page = (
        "<!-- file: note.txt -->\n```text\nhello\n```\n\n"
        "```python\nfrom pathlib import Path\ntext = Path('note.txt').read_text()\n```\n\n"
        "```python\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: 'int'\n```\n\n"
        "```python\nassert A(x=len(text)).x == 6\n```\n"
    )
    assert run_page(page, "page.md") == 3


def test_a_failing_python_block_is_named_by_page_and_line(folder: Path) -> None:
    with pytest.raises(PageError, match=r"page\.md:4: the Python block fails: ZeroDivisionError"):
        run_page("# Title\n\n```python\n1 / 0\n```\n", "page.md")


def test_a_command_with_the_wrong_exit_code_fails_its_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_runner, "_gantline", lambda words: 3 if "missing" in words else 0)
    good = "```console\n$ gantline policy list\nfifo\n$ gantline simulate jobs.csv > out.json\n```\n"
    bad = "```bash\n# a comment\ngantline policy show missing\n```\n"
    assert run_page(good, "page.md") == 1
    assert (folder / "out.json").exists()
    with pytest.raises(PageError, match="ended with code 3, not 0"):
        run_page(bad, "page.md")
    assert run_page("<!-- exit: 3 -->\n" + bad, "page.md") == 1


@pytest.mark.parametrize("command", ["make demo", "pip install gantline", "git log", "gantline policy list | head -3"])
def test_a_command_that_cannot_run_here_needs_the_mark(command: str, folder: Path) -> None:
    block = f"```console\n$ {command}\n```\n"
    with pytest.raises(PageError, match="not run: REASON"):
        run_page(block, "page.md")
    assert run_page(f"<!-- not run: it would install things -->\n{block}", "page.md") == 0


def test_a_console_block_without_a_command_is_refused(folder: Path) -> None:
    with pytest.raises(PageError, match="no command in the block"):
        run_page("```console\ngantline policy list\n```\n", "page.md")


def test_a_mark_counts_for_the_next_block_only() -> None:
    first, second = blocks("<!-- not run: needs a cluster -->\n```bash\nmake\n```\n\n```python\nx = 1\n```\n")
    assert not first.runs
    assert second.runs
    (later,) = blocks("<!-- not run: needs a cluster -->\n\nSome text.\n\n```python\nx = 1\n```\n")
    assert later.runs


def test_a_backslash_continues_a_command() -> None:
    block = Block("console", "$ gantline simulate jobs.csv \\\n    --policy srtf\noutput\n", 1)
    assert [line.split() for line in command_lines(block)] == [["gantline", "simulate", "jobs.csv", "--policy", "srtf"]]
