"""The version, the licence and the changelog say the same wherever they are written."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path
from runpy import run_path

import pytest
import yaml

import gantline

ROOT = Path(__file__).parents[2]

# SHA-256 of the words of the standard text, spaces and line breaks evened out.
APACHE_2_0 = "0ffddef9e48f8a09aed5caf2d44f7ba1c1be2d9b8e0a6f693b1635b2d5566645"


@pytest.fixture(scope="module")
def project() -> dict[str, object]:
    """The [project] table of pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


@pytest.fixture(scope="module")
def citation() -> dict[str, object]:
    """CITATION.cff, as a dictionary."""
    return dict(yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")))


def test_the_installed_package_has_the_version_of_the_project_file(project: dict[str, object]) -> None:
    installed = metadata("gantline")
    assert installed["Version"] == project["version"], "run make again: the environment is older than pyproject.toml"
    assert installed["License-Expression"] == project["license"]
    assert gantline.__version__ == project["version"]


def test_the_citation_names_the_same_version_and_licence(project: dict[str, object], citation: dict[str, object]) -> None:
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]


def test_the_citation_has_what_its_format_requires(citation: dict[str, object]) -> None:
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def test_the_changelog_has_a_dated_entry_for_the_version(project: dict[str, object], citation: dict[str, object]) -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(rf"^## \[{re.escape(str(project['version']))}\] - (\d{{4}}-\d\d-\d\d)$", text, re.MULTILINE)
    assert entry, f"CHANGELOG.md has no entry '## [{project['version']}] - YYYY-MM-DD'"
    assert entry[1] == str(citation["date-released"])
    assert "## [Unreleased]" in text[: entry.start()]


def test_the_licence_is_the_unchanged_apache_text(project: dict[str, object]) -> None:
    assert project["license"] == "Apache-2.0"
    assert project["license-files"] == ["LICENSE"]
    words = " ".join((ROOT / "LICENSE").read_text(encoding="utf-8").split())
    assert hashlib.sha256(words.encode()).hexdigest() == APACHE_2_0, "LICENSE differs from the standard text"


def test_pages_and_messages_name_extras_that_there_are(project: dict[str, object]) -> None:
    """Pages say what works in a checkout; messages are of a package that is installed."""
    written = [page for page in (ROOT / "docs").rglob("*.md") if "cli" not in page.relative_to(ROOT / "docs").parts]  # that one is made
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *written]
    command = re.compile(r"pip install ([^`\n#]*?)'(\S*)\[([\w,]+)\]'")
    named = [(file, *found) for file in pages for found in command.findall(file.read_text(encoding="utf-8"))]
    assert {file.name for file, *_ in named} >= {"README.md", "live.md"}
    for file, how, package, extras in named:
        assert how.strip() in ("", "-e"), file
        assert package == ".", f"{file}: pip would look for '{package}' on a package index"
        assert set(extras.split(",")) <= set(project["optional-dependencies"]), file  # type: ignore[call-overload]
    for file in (ROOT / "src").rglob("*.py"):
        for extras in re.findall(r"pip install 'gantline\[([\w,]+)\]'", file.read_text(encoding="utf-8")):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), file  # type: ignore[call-overload]


# The commands that the README promises exist and do their steps in order.


def make(*arguments: str) -> str:
    """What make prints; it is only ever asked for help or for a dry run here."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=clean, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def fresh(tmp_path: Path) -> str:
    """The argument that points make at an environment that does not exist yet."""
    return f"VENV={tmp_path / 'venv'}"


def test_help_lists_every_target() -> None:
    declared = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert declared
    listed = set(re.findall(r"^  make ([a-z-]+)", make("help"), re.MULTILINE))
    assert listed == set(declared[1].split())


def test_the_demo_needs_no_more_than_the_core_and_plots(fresh: str) -> None:
    steps = make("-n", fresh, "demo")
    assert "-m venv" in steps
    assert "-e '.[plot]'" in steps
    assert "[dev]" not in steps
    assert steps.rstrip().endswith("-m gantline.cli.main demo")


def test_the_checks_run_from_quick_to_slow(fresh: str) -> None:
    steps = make("-n", fresh, "test")
    order = ["-m venv", "-e '.[dev]'", "ruff check", "ruff format --check", "bin/mypy", "lint-imports", "bin/pytest -n"]
    places = [steps.index(step) for step in order]
    assert places == sorted(places)


def test_a_finished_environment_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("bin/python", ".installed-core", ".installed-dev"):
        (tmp_path / name).touch()
    assert "pip install" not in make("-n", f"VENV={tmp_path}", "lint", "demo")
    os.utime(tmp_path / ".installed-dev", (0, 0))  # as if pyproject.toml had changed since
    assert "pip install" in make("-n", f"VENV={tmp_path}", "lint")


@pytest.mark.parametrize(("target", "own"), [("test-lowest", "--constraint .lowest.txt -e '.[dev]'"), ("test-newest", "python9.9 -m venv")])
def test_other_versions_have_the_same_tests_in_an_environment_built_anew(target: str, own: str) -> None:
    steps = make("-n", "PYTHON=python9.9", target)
    assert own in steps
    environment = target.replace("test", ".venv")
    order = [f"-m venv --clear {environment}", "pip install", f"{environment}/bin/pytest -n"]
    places = [steps.index(step) for step in order]
    assert places == sorted(places)


def test_the_lowest_versions_run_the_demo_and_a_small_selection_of_tests() -> None:
    steps = make("-n", "PYTHON=python9.9", "test-lowest-small")
    order = ["python9.9 .ci/lowest.py > .lowest.txt", ".venv-lowest/bin/python -m gantline.cli.main demo", ".venv-lowest/bin/pytest -n"]
    places = [steps.index(step) for step in order]
    assert places == sorted(places)
    chosen = [word for word in steps[places[-1] :].split() if word.startswith("tests/") and word.endswith(".py")]
    assert len(chosen) > 5
    assert all((ROOT / name).is_file() for name in chosen)


@pytest.mark.parametrize("script", [".ci/run", ".ci/test-system"])
def test_the_scripts_of_ci_stop_at_the_first_failure(script: str) -> None:
    path = ROOT / script
    assert os.access(path, os.X_OK), f"chmod +x {script}"
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")


def test_ci_runs_what_a_person_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    called = [word for line in lines if line.startswith("make ") for word in line.partition("||")[0].split()[1:] if "=" not in word]
    parts = re.search(r"^test: (.*) ##", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert parts
    assert called == [*parts[1].split(), "test-lowest-small", "test-system", "docs"]


def test_every_mutant_still_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect that can no longer be planted would count as killed."""
    monkeypatch.syspath_prepend(str(ROOT / ".ci"))
    for mutant in run_path(str(ROOT / ".ci" / "mutants.py"), run_name="mutants")["MUTANTS"]:
        assert mutant.old in (ROOT / mutant.file).read_text(encoding="utf-8"), f"{mutant.file}: {mutant.old}"
        assert all((ROOT / test).exists() for test in mutant.tests.split())


# What a run says about comparisons that it could not make and about its processor time, and what is done about unsteady tests.

pytest_plugins = ["pytester"]
CONFTEST = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")


def tell(pytester: pytest.Pytester, tests: str, *options: str) -> str:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(tests)
    done = pytester.runpytest_inprocess("-s", "-p", "no:xdist", "-p", "no:cacheprovider", *options)
    assert done.ret == 0
    return done.stdout.str()


def test_a_run_names_how_many_comparisons_it_could_not_make(pytester: pytest.Pytester) -> None:
    skips = "import pytest\n@pytest.mark.parametrize('k', range(3))\ndef test_it(k): pytest.skip('no /some/shared/reference/blox')\n"
    assert "3 comparisons with the originals were not made" in tell(pytester, skips)
    assert "were not made" not in tell(pytester, "import pytest\ndef test_it(): pytest.skip('no root')\n")


def test_a_run_says_where_its_processor_time_goes(pytester: pytest.Pytester) -> None:
    """What a test computes is counted to that test, what it waits for is not."""
    tests = "import time\ndef test_idle(): time.sleep(0.2)\ndef test_busy(): sum(range(6_000_000))\n"
    told = tell(pytester, tests, "--cpu-seconds").partition("processor seconds by test =")[2].splitlines()
    assert [line.rpartition("::")[2] for line in told[1:3]] == ["test_busy", "test_idle"]
    assert told[3].endswith("all 2 tests")


@pytest.mark.parametrize(
    ("listed", "broken", "ends"),
    [
        ("tests/test_race.py::test_race: both write the same file\n", "", 0),
        ("# none\n", "", 1),
        ("tests/test_race.py::test_race: both write the same file\n", "def test_broken(): assert False\n", 1),
        ("tests/test_race.py::test_race\n", "", 1),
    ],
    ids=["known", "unknown", "beside a failure", "without a cause"],
)
def test_a_test_that_fails_once_and_passes_alone_must_be_listed_with_its_cause(tmp_path: Path, listed: str, broken: str, ends: int) -> None:
    race = "from pathlib import Path\ndef test_race():\n    there = Path('seen').exists()\n    Path('seen').touch()\n    assert there\n"
    for name, text in (
        (".ci/unsteady.py", ""),
        ("tests/unsteady.txt", listed),
        ("tests/test_race.py", race + broken),
        ("pytest.ini", "[pytest]\naddopts = -q\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copy(ROOT / ".ci" / "unsteady.py", tmp_path / ".ci")
    first = subprocess.run([sys.executable, "-m", "pytest", "--cache-clear"], cwd=tmp_path, capture_output=True, check=False)
    again = subprocess.run([sys.executable, ".ci/unsteady.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (first.returncode, again.returncode) == (1, ends), again.stdout
