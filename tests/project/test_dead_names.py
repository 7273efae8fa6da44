"""Pages and READMEs name files, modules, classes, functions, commands and options that exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.project.test_named_commands import unknown

from gantline.live.runners.registry import RUNNERS, options_of

ROOT = Path(__file__).parents[2]
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
