"""Another package brings parts of every kind: installed beside ours, they are found by their names."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Cli, cli, folder  # noqa: F401
from tests.systems.some_package import write_package

import gantline
from gantline.core.errors import UsageError
from gantline.engine.regime import find_regime
from gantline.lab.experiment.reproduction import find_study
from gantline.live.runners.registry import find_runner
from gantline.policies.placement.rules import find_placement
from gantline.policies.registry import find_policy, make_policy
from gantline.registry import KINDS
from gantline.traces.generators import generate
from gantline.traces.generators.registry import is_generator
from gantline.traces.importers.registry import find_importer
from gantline.traces.performance import find_model

Install = Callable[..., None]
LAS = ("simulate", "jobs.csv", "--cluster", "1x8", "--policy", "las")


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a package with its entry points where packages are found, as pip does."""

    def put(name: str = "acmesched", **groups: str) -> None:
        site = tmp_path_factory.mktemp("site")
        write_package(site, name, **groups)
        monkeypatch.syspath_prepend(site)
        for module in [one for one in sys.modules if one.partition(".")[0] == name]:
            monkeypatch.delitem(sys.modules, module)

    return put


def test_a_model_reads_profiles_in_a_layout_of_its_own(install: Install, cli: Cli, folder: Path) -> None:  # noqa: F811
    install(
        performance_models="slowed = acmesched.parts:slowed",
        profile_readers="slowed = acmesched.parts:slowdown",
        generators="twins = acmesched.parts:twins",
    )
    (folder / "measured").mkdir()
    (folder / "measured" / "slowdown.txt").write_text("3")
    run = ("simulate", "twins", "--cluster", "1x2", "--policy", "fifo", "--performance", "slowed", "-o", "json")

    told = cli(*run, "--profiles", "measured")
    assert told.json["average_jct"] == 180.0
    assert "no slowdown is known (give --profiles DIR)" in cli(*run).err
    assert "no such folder" in cli(*run, "--profiles", "absent").err


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


@pytest.mark.parametrize(
    ("group", "entry", "command"),
    [
        ("policies", "fifo = acmesched.parts:Youngest", ("simulate", "jobs.csv", "--cluster", "1x8", "--policy", "fifo")),
        ("policies", "fifo = acmesched.parts:Youngest", ("compare", "jobs.csv", "--cluster", "1x8", "--policy", "fifo,srtf")),
        ("policies", "auto = acmesched.parts:Youngest", ("policy", "show", "auto")),
        ("policies", "gavel.fifo = acmesched.parts:Youngest", ("policy", "show", "gavel.fifo")),
        ("policies", "fifo = acmesched.parts:Youngest", ("up", "--policy", "fifo")),
        ("regimes", "blox = acmesched.parts:REGIME", (*LAS, "--regime", "blox")),
        ("placements", "packed = acmesched.parts:Last", ("placement", "show", "packed")),
        ("placements", "random = acmesched.parts:Last", (*LAS, "--placement", "random")),
        ("executors", "instant = acmesched.parts:slow", LAS),
        ("executors", "faulty = acmesched.parts:slow", (*LAS, "--executor", "faulty:1")),
        ("performance_models", "trace = acmesched.parts:HalfSpeed", LAS),
        ("runners", "local = acmesched.runner:Noted", ("up", "--executor", "local")),
        ("importers", "philly = acmesched.parts:read", ("trace", "import", "philly", "jobs.csv", "out.csv")),
        ("generators", "day = acmesched.parts:twins", ("simulate", "day", "--cluster", "1x8", "--policy", "las")),
        ("studies", "blox-fig6 = acmesched.study:Figure", ("reproduce", "blox-fig6")),
    ],
)  # fmt: skip
def test_a_name_that_is_ours_is_refused_wherever_it_is_used(
    group: str,
    entry: str,
    command: tuple[str, ...],
    install: Install,
    cli: Cli,  # noqa: F811
    folder: Path,  # noqa: F811
) -> None:
    install(**{group: entry})
    name, _, target = entry.partition(" = ")
    refused = cli(*command)
    assert refused.code == 2, refused.out
    assert f"two things are called {KINDS[group]} '{name}': gantline." in refused.err
    assert f"{target} of package 'acmesched' (rename one, or uninstall the package that brings it)" in refused.err


def test_lists_refuse_a_name_that_is_taken_and_other_names_go_on_working(install: Install, cli: Cli, folder: Path) -> None:  # noqa: F811
    install(policies="fifo = acmesched.parts:Youngest")
    assert "two things are called policy 'fifo'" in cli("policy", "list").err
    assert cli("policy", "show", "srtf").code == 0


def test_our_names_work_beside_a_manifest_that_cannot_be_read(install: Install, cli: Cli) -> None:  # noqa: F811
    install(systems="acmesched = acmesched.gone:SYSTEM")
    assert cli("policy", "show", "fifo").code == 0
    for refused in (cli("system", "list"), cli("policy", "show", "fof")):
        assert "package acmesched: manifest 'SYSTEM' cannot be loaded: ModuleNotFoundError" in refused.err


def test_a_regime_of_ours_is_imitated_by_no_other_package(install: Install, cli: Cli, folder: Path) -> None:  # noqa: F811
    install(imitations="default = acmesched.parts:imitate", scopes="default = acmesched.parts:SCOPE")
    refused = cli("simulate", "jobs.csv", "--cluster", "1x8", "--policy", "fifo")
    assert "package 'acmesched' brings an imitation of regime 'default', which 'gantline' brings" in refused.err


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
        ("placements", "odd = acmesched.parts:read", find_placement, "package acmesched: 'odd' is a function"),
        ("placements", "odd = acmesched.parts:Youngest", find_placement, "'odd' is a class that is not a DeviceRule"),
        ("runners", "odd = acmesched.parts:Youngest", find_runner, "'odd' is a Youngest, not an executor of a service"),
        ("performance_models", "odd = acmesched.parts:Gone", find_model, "performance model 'odd' cannot be loaded: AttributeError"),
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
