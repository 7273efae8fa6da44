"""The list of tests that wait for the long run names tests that are there, and is left aside where somebody asks for tests by name."""

from __future__ import annotations

import subprocess
import sys

from tests.later import TESTS, defined_in, names_that_wait

ROOT = TESTS.parent


def test_the_list_names_tests_that_are_there() -> None:
    gone = sorted(name for name in names_that_wait() if name not in defined_in(name.partition("::")[0]))
    assert not gone, f"tests/later.txt names tests that are gone or have another name: {gone}; change it, or choose anew (make later)"


def test_all_tests_of_a_file_run_when_it_is_named_and_few_wait_when_all_are_asked_for() -> None:
    waits = sorted(names_that_wait())[0]
    file = waits.partition("::")[0]
    assert waits in _collected(file)
    assert waits not in _collected("tests", f"--deselect={file}::nothing", *_others_ignored(file))


def _others_ignored(file: str) -> list[str]:
    """Collecting one file tells as much as collecting all of them."""
    return [f"--ignore-glob={path}" for path in ROOT.glob("tests/**/test_*.py") if path != ROOT / file]


def _collected(*words: str) -> str:
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider", "-n", "0", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return found.stdout
