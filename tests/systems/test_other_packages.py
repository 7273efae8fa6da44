"""Somebody else's package brings parts of every kind: installed beside ours, they are found by their names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, cli, folder  # noqa: F401

import gantline
from gantline.core.errors import UsageError
from gantline.engine.regime import find_regime, regime_names
from gantline.experiment.reproduce.registry import find_study
from gantline.imitations.registry import find_imitation
from gantline.policies.registry import find_policy, make_policy, policy_names
from gantline.workload.generators.making import generate
from gantline.workload.generators.registry import is_generator
from gantline.workload.importers.reading import import_trace
from gantline.workload.importers.registry import find_importer, importer_names

PARTS = '''
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gantline import OrderPolicy, Trace
from gantline.engine.regime import Regime
from gantline.registry import HeldAgainst, System


@dataclass(frozen=True)
class Youngest(OrderPolicy):
    """Youngest first."""

    name: ClassVar[str] = "youngest"
    paper: ClassVar[str] = "folklore"

    def key(self, snapshot):
        return -snapshot.jobs.arrival


REGIME = Regime(name="minutes", round=60.0)


def read(src: Path) -> Trace:
    """One job a line: its length."""
    lengths = [float(line) for line in src.read_text().split()]
    return Trace.from_records([{"job": f"j{at}", "arrival": 0.0, "gpus": 1, "duration": one} for at, one in enumerate(lengths)])


def twins(seed, settings):
    return Trace.from_records([{"job": name, "arrival": 0.0, "gpus": 1, "duration": 60.0} for name in ("a", "b")])


def lengths(seed, settings):
    return [30.0, 90.0]


SYSTEM = System(
    name="acmesched",
    title="A scheduler that was never published",
    papers=("Nobody: Nothing (NSDI 2030)",),
    policies={"acme.youngest": ".parts:Youngest"},
    held_against=(HeldAgainst("nothing", "untested", "tests/none.py"),),
)
'''

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package with its entry points where packages are found, as pip does."""

    def put(name: str = "acmesched", **groups: str) -> None:
        site = tmp_path_factory.mktemp("site")
        (site / name).mkdir()
        (site / name / "__init__.py").write_text("")
        (site / name / "parts.py").write_text(PARTS)
        told = site / f"{name}-1.0.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"[gantline.{group}]\n{entry}\n" for group, entry in groups.items()]
        (told / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(site)
        for module in (name, f"{name}.parts"):
            monkeypatch.delitem(sys.modules, module, raising=False)

    return put


def test_a_policy_a_regime_a_format_and_a_generator_run_together(install: Install, cli: Cli, folder: Path) -> None:  # noqa: F811
    install(
        policies="youngest = acmesched.parts:Youngest",
        regimes="minutes = acmesched.parts:REGIME",
        importers="lengths = acmesched.parts:read",
        generators="twins = acmesched.parts:twins",
    )
    (folder / "lengths.txt").write_text("30\n90\n")
    assert "youngest" in policy_names()
    assert "minutes" in regime_names()
    assert find_regime("minutes").round == 60.0
    assert find_imitation("minutes") is None
    assert "lengths" in importer_names()
    assert import_trace("lengths", folder / "lengths.txt").frame["duration"].to_list() == [30.0, 90.0]
    assert generate("twins").frame.height == 2
    told = cli("simulate", "twins", "--cluster", "1x1", "--policy", "youngest", "--regime", "minutes", "-o", "json")
    assert (told.code, told.json["policy"], told.json["regime"], told.json["round"]) == (0, "youngest", "minutes", 60.0)
    imported = cli("trace", "import", "lengths", "lengths.txt", "jobs2.csv")
    assert imported.code == 0


def test_a_file_goes_before_a_generator_of_an_installed_package(install: Install, folder: Path) -> None:  # noqa: F811
    install(generators="jobs.csv = acmesched.parts:twins")
    assert not is_generator("jobs.csv")
    (folder / "jobs.csv").unlink()
    assert is_generator("jobs.csv")


def test_a_whole_system_is_listed_and_its_parts_are_found(install: Install, cli: Cli) -> None:  # noqa: F811
    install(systems="acmesched = acmesched.parts:SYSTEM")
    assert "acmesched" in [system.name for system in gantline.list_systems()]
    assert make_policy("acme.youngest").name == "youngest"
    told = cli("system", "show", "acmesched", "-o", "json").json
    assert (told["policies"], told["package"]) == (["acme.youngest"], "acmesched")
    assert "acme.youngest" in cli("policy", "list", "-o", "csv").out


def test_a_study_of_another_package_is_found_and_checked(install: Install) -> None:
    install(studies="acme-figure = acmesched.parts:Youngest")
    with pytest.raises(UsageError, match="'acme-figure' is a type, not a study"):
        find_study("acme-figure")


def test_a_name_that_is_ours_is_refused_where_all_are_listed(install: Install, cli: Cli) -> None:  # noqa: F811
    install(policies="fifo = acmesched.parts:Youngest")
    refused = cli("policy", "list")
    assert refused.code == 2
    assert "two things are called policy 'fifo': gantline.policies.fifo:Fifo of gantline and acmesched.parts:Youngest" in refused.err
    assert "package 'acmesched'" in refused.err
    assert find_policy("fifo").__module__ == "gantline.policies.fifo"


def test_two_packages_with_one_name_are_refused(install: Install) -> None:
    install("one", policies="mine = one.parts:Youngest")
    install("two", policies="mine = two.parts:Youngest")
    with pytest.raises(UsageError, match=r"two things are called policy 'mine': .*'one' and .*'two'|.*'two' and .*'one'"):
        find_policy("mine")


@pytest.mark.parametrize(
    ("group", "entry", "find", "words"),
    [
        ("policies", "odd = acmesched.parts:Missing", find_policy, "package acmesched: policy 'odd' cannot be loaded: AttributeError"),
        ("policies", "odd = acmesched.gone:Youngest", find_policy, "policy 'odd' cannot be loaded: ModuleNotFoundError"),
        ("policies", "odd = acmesched.parts:read", find_policy, "'odd' is a function, not a policy class"),
        ("regimes", "odd = acmesched.parts:Youngest", find_regime, "'odd' is a type, not a regime"),
        ("generators", "odd = acmesched.parts:lengths", generate, "generator 'odd': made a value of type list, not a Trace"),
        ("importers", "odd = acmesched.parts:Gone", find_importer, "trace format 'odd' cannot be loaded"),
        ("systems", "odd = acmesched.parts:Youngest", find_policy, "acmesched.parts:Youngest is a type, not a System"),
    ],
)
def test_what_a_package_brings_and_cannot_be_used_is_named(
    group: str, entry: str, find: Callable[[str], object], words: str, install: Install
) -> None:
    install(**{group: entry})
    with pytest.raises(UsageError) as refused:
        find("odd")
    assert words in str(refused.value)
