"""The pages that are written from the code, and lists of pages that must be whole."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest
from cyclopts import App, Parameter

import gantline
from gantline.cli.main import COMMANDS
from gantline.live.runners.registry import RUNNERS, options_of

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


# Pages and READMEs name files, modules, classes, functions, commands and options that exist.

SOURCE = ROOT / "src" / "gantline"
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "cli" not in page.relative_to(ROOT / "docs").parts),  # that one is made
    *sorted(SOURCE.rglob("README.md")),
]  # fmt: skip

#: names of other programs that a page speaks of
ELSEWHERE = {"increase()", "--scheme", "--node-name", "--no-kill", "--gres", "SlurmdTimeout", "KillWait", "MaxStepCount"}


@cache
def words() -> frozenset[str]:
    """Every identifier of the sources, of benchmarks and examples."""
    found: set[str] = set()
    for folder in ("src", "benchmarks", "examples", "docs/_ext"):
        for file in (ROOT / folder).rglob("*.py"):
            found |= set(re.findall(r"[A-Za-z_]\w*", file.read_text(encoding="utf-8")))
    return frozenset(found)


@cache
def files() -> frozenset[str]:
    """Every file of the repository by its path, by each end of its path, and without its ending."""
    found = set()
    for folder in ("src", "tests", "benchmarks", "examples", "docs"):
        for file in (ROOT / folder).rglob("*"):
            if "__pycache__" not in file.parts:
                parts = file.relative_to(ROOT).parts
                found |= {"/".join(parts[at:]) for at in range(len(parts))}
    return frozenset(found)


@cache
def options() -> frozenset[str]:
    """Every option of the command line: arguments of commands, fields of their groups, names that are given them."""
    found: set[str] = set()
    for file in [*(SOURCE / "cli").rglob("*.py"), SOURCE / "engine" / "assembly" / "spec.py", *(ROOT / "benchmarks").glob("*.py")]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.arg):
                names = [node.arg]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"--[a-z][\w-]*", node.value):
                found.add(node.value)
            found |= {"--" + name.strip("_").replace("_", "-") for name in names}
    found |= {f"--{option.name}" for runner in RUNNERS.entries() for option in options_of(runner)}
    return frozenset(found | {f"--no-{one[2:]}" for one in found} | {"--help", "--version"})


def quoted(text: str) -> Iterator[str]:
    """What stands between back-quotes outside of blocks of code."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (found.strip() for found in re.findall(r"`([^`\n]+)`", prose))


def dead(text: str) -> list[str]:
    """What a page names and does not exist."""
    found = [f"gantline {name}" for name in unknown(text)]
    for name in quoted(text):
        if re.fullmatch(r"[\w./-]+\.py", name) and "*" not in name:
            found += [name] if name.removeprefix("./") not in files() else []
        elif re.fullmatch(r"gantline(\.\w+)+(\(\))?", name):
            _, room, *_, last = ["", *name.removesuffix("()").split(".")]
            found += [name] if not {last, room} <= words() else []
        elif re.fullmatch(r"(?:[A-Z][a-z0-9]+){2,}(?:\.\w+)?(?:\(.*\))?", name):
            found += [name] if not set(re.findall(r"^\w+|(?<=\.)\w+", name.partition("(")[0])) <= words() else []
        elif re.fullmatch(r"[a-z_]\w+\(\)", name):
            found += [name] if name[:-2] not in words() else []
        elif option := re.match(r"--[a-z][\w-]*", name):
            found += [option[0]] if option[0] not in options() else []
    return [name for name in found if name not in ELSEWHERE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_what_exists(page: Path) -> None:
    assert dead(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("readme", sorted(SOURCE.rglob("README.md")), ids=lambda file: file.parent.relative_to(SOURCE).as_posix())
def test_the_picture_of_a_package_names_files_that_exist(readme: Path) -> None:
    named = set(re.findall(r"(?<![\w*])[a-z][\w/]*\.py\b", readme.read_text(encoding="utf-8")))
    assert {name for name in named if name not in files()} == set()


@pytest.mark.parametrize(
    "name",
    ["`no_file.py`", "`gantline.core.no_such_part`", "`NoSuchThing`", "`no_such_act()`", "`--no-such-option`", "`gantline frobnicate`"],
)
def test_a_name_of_nothing_is_found(name: str) -> None:
    assert dead(f"A page that says {name}.") != []


# Messages and pages name commands that exist.

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
