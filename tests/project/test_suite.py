"""What a run says about comparisons that it could not make and about its processor time, and what is done about unsteady tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).parents[2]
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
