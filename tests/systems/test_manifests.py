"""A system is a folder: its manifest names what it brings, all of which is there, and nothing else knows where."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401

import gantline
from gantline import registry
from gantline.core.errors import NotFoundError, UsageError
from gantline.policies.registry import policy_names
from gantline.registry import KINDS, Register, find_system, list_systems, load_target, own_systems

SOURCE = Path(gantline.__file__).parent
ROOT = SOURCE.parents[1]
NAMES = sorted(place.name for place in (SOURCE / "systems").iterdir() if (place / "__init__.py").exists())
each_system = pytest.mark.parametrize("name", NAMES)

#: rooms that run any policy in any regime
KNOW_NO_SYSTEM = ("engine", "simulator", "live")
#: parts of them that put a run together, look at a cluster of Slurm, or start steps of it
MAY_NAME_SOME = ("engine/assembly/", "live/watch/", "live/runners/slurm/")

#: words of systems in those rooms that are no knowledge: (file, word) -> why
WORDS = {
    ("live/runners/registry.py", "slurm"): "the engine, which a runner gives steps to start",
    ("live/service/metrics.py", "voda"): "its names of metrics, which dashboards made for it read",
}


def test_every_folder_is_a_system_of_its_name() -> None:
    assert [system.name for system in own_systems()] == NAMES


@each_system
def test_everything_that_a_manifest_names_is_there(name: str) -> None:
    system = find_system(name)
    found = {kind: [load_target(entry, KINDS[kind]) for entry in system.entries(kind)] for kind in KINDS}
    assert any(found.values())
    assert system.imitations.keys() == system.scopes.keys() <= system.regimes.keys()
    assert all(target.startswith(".") for kind in KINDS for target in map(_target, getattr(system, kind).values()))


@each_system
def test_its_papers_page_and_tests_are_facts(name: str) -> None:
    system = find_system(name)
    assert system.title
    assert all(re.search(r"\((\w+ ?)+ \d{4}\)$", paper) for paper in system.papers), "venue and year"
    assert (ROOT / "docs" / system.page).is_file()
    assert system.held_against
    assert all((ROOT / held.test).is_file() for held in system.held_against)


@each_system
def test_no_module_of_a_system_is_named_outside_of_it(name: str) -> None:
    for place, text in _outside_of_systems():
        assert f"gantline.systems.{name}" not in text, place


def test_rooms_that_run_anything_know_no_system_by_name() -> None:
    names = {*NAMES, *(regime for system in own_systems() for regime in system.regimes)}
    somewhere = re.compile("|".join(names))  # few files have any: only they are read word by word
    files = [(file, file.relative_to(SOURCE).as_posix()) for room in KNOW_NO_SYSTEM for file in (SOURCE / room).rglob("*.py")]
    found = {(place, word) for file, place in files
             if not place.startswith(MAY_NAME_SOME) and somewhere.search(file.read_text(encoding="utf-8").lower())
             for word in _words(file) & names}  # fmt: skip
    assert found == WORDS.keys()


def test_manifests_are_read_without_what_they_name() -> None:
    heavy = "sorted({'numpy', 'numba', 'polars'} & sys.modules.keys())"
    code = f"import sys; from gantline.registry import list_systems; list_systems(); print({heavy})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_two_of_our_own_parts_cannot_have_one_name() -> None:
    planted = Register("policies", {"gavel.fifo": "elsewhere:Fifo"})
    with pytest.raises(UsageError, match=r"two things are called policy 'gavel\.fifo': elsewhere:Fifo of gantline and"):
        planted.own()


def test_a_system_is_shown_with_what_it_was_held_against(cli: Cli) -> None:  # noqa: F811
    told = cli("system", "show", "gavel", "-o", "json").json
    assert "gavel.max_min_fairness" in told["policies"]
    assert told["regimes"] == told["imitated regimes"] == told["importers"] == ["gavel"]
    assert any("1e-4" in held["result"] for held in told["held against"])
    listed = cli("system", "list", "-o", "json").json
    assert [row["system"] for row in listed] == NAMES
    assert json.dumps(listed).count('"gantline"') == len(NAMES)
    assert "every job to 0.01 s" in cli("system", "show", "gavel").out
    assert cli("system", "show", "gavel", "-o", "csv").out.startswith("what,result,test\n")


def test_a_system_that_is_not_there_is_not_found(cli: Cli) -> None:  # noqa: F811
    refused = cli("system", "show", "gavle")
    assert refused.code == 3
    assert "did you mean 'gavel'" in refused.err
    with pytest.raises(NotFoundError):
        gantline.find_system("gavle")
    assert [system.name for system in gantline.list_systems()] == [system.name for system in list_systems()]


def _target(place: str | tuple[str, str]) -> str:
    return place if isinstance(place, str) else place[0]


@cache
def _outside_of_systems() -> list[tuple[Path, str]]:
    """Every file outside of the systems that names one of them, with its text; read once for all."""
    files = [file for file in sorted(SOURCE.rglob("*.py")) if not file.is_relative_to(SOURCE / "systems")]
    return [(file, text) for file in files if "gantline.systems." in (text := file.read_text(encoding="utf-8"))]


def _words(file: Path) -> set[str]:
    """The words of names and texts that the program uses; what it says about itself is left out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            found |= set(re.findall(r"[a-z]+", node.value.lower()))
        elif isinstance(node, ast.alias):
            found |= set(re.findall(r"[a-z]+", node.name.lower()))
    return found


def test_what_packages_announce_is_read_only_where_one_brings_something(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(**_: str) -> None:
        raise AssertionError("every installed package was read")

    monkeypatch.setattr("importlib.metadata.entry_points", read)
    monkeypatch.setattr(registry, "has_foreign", lambda: False)
    registry._known_foreign.cache_clear()
    assert "fifo" in policy_names()
    assert "blox" in [system.name for system in list_systems()]
