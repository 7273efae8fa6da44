"""The list of tests that wait for the long run names tests that are there, and is left aside where somebody asks for tests by name."""

from __future__ import annotations

from pathlib import Path
from shlex import split

import pytest
from tests import later
from tests.later import defined_in, names_that_wait

pytest_plugins = ["pytester"]
CONFTEST = (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")


def test_the_list_names_tests_that_are_there() -> None:
    there = {path: defined_in(path) for path in {name.partition("::")[0] for name in names_that_wait()}}
    gone = sorted(name for name in names_that_wait() if name not in there[name.partition("::")[0]])
    assert not gone, f"tests/later.txt names tests that are gone or have another name: {gone}; change it, or choose anew (make later)"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "now"),
        ("tests", "now"),
        ("-m 'not long'", "now slow 1 slow 2"),
        ("-k 'slow or now'", "now slow 1 slow 2"),
        ("tests/test_room.py", "now slow 1 slow 2"),
        ("tests/test_room.py::test_slow", "slow 1 slow 2"),
        ("--later", "now slow 1 slow 2"),
        ("--long", "now slow 1 slow 2"),
    ],
)
def test_a_test_of_the_list_waits_unless_tests_are_named(
    words: str, told: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pytester.mkdir("tests")
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\ntestpaths = tests\nmarkers = long: rules know it")
    (folder / "test_room.py").write_text(
        "import pytest\n"
        "def test_now(): print('told now')\n"
        "@pytest.mark.parametrize('case', [1, 2])\n"
        "def test_slow(case): print('told slow', case)\n"
    )
    (pytester.path / "later.txt").write_text("# which wait\ntests/test_room.py::test_slow\n")
    monkeypatch.setattr(later, "LIST", pytester.path / "later.txt")
    monkeypatch.setattr(later, "TESTS", folder)
    done = pytester.runpytest_inprocess("-s", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *split(words))
    assert " ".join(line.partition("told ")[2] for line in done.outlines if "told " in line) == told
