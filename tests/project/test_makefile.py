"""The commands that the README promises exist and do their steps in order."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    spec = importlib.util.spec_from_file_location("mutants", ROOT / ".ci" / "mutants.py")
    mutants = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = mutants
    spec.loader.exec_module(mutants)
    for mutant in mutants.MUTANTS:
        assert mutant.old in (ROOT / mutant.file).read_text(encoding="utf-8"), f"{mutant.file}: {mutant.old}"
        assert all((ROOT / test).exists() for test in mutant.tests.split())
