"""What runs at every change, what runs in `make test-long`, and what a run says about comparisons that it could not make."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
CONFTEST = (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")
TESTS = """
import pytest
from hypothesis import given, settings, strategies as st

drawn = {"many": 0, "few": 0, "usual": 0}

@settings(max_examples=80)
@given(st.integers())
def test_many(number): drawn["many"] += 1

@settings(max_examples=6)
@given(st.integers())
def test_few(number): drawn["few"] += 1

@pytest.mark.parametrize("which", [1, 2])
@given(number=st.integers())
def test_usual(which, number): drawn["usual"] += 1

@pytest.mark.long
def test_large(): pass

def test_told(long): print("drawn", long, *drawn.values())
"""


def tell(pytester: pytest.Pytester, tests: str, *options: str) -> str:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(tests)
    done = pytester.runpytest_inprocess("-s", "-p", "no:xdist", "-p", "no:cacheprovider", *options)
    assert done.ret == 0
    return done.stdout.str()


def test_a_quarter_of_the_random_examples_and_no_large_forms_at_every_change(pytester: pytest.Pytester) -> None:
    told = tell(pytester, TESTS)
    assert "drawn False 20 6 50" in told
    assert "1 deselected" in told


def test_the_long_run_draws_all_examples_and_takes_the_large_forms(pytester: pytest.Pytester) -> None:
    told = tell(pytester, TESTS, "--long")
    assert "drawn True 80 6 200" in told
    assert "6 passed" in told


PRODUCT = """
import pytest

taken = []

{mark}
@pytest.mark.parametrize("option", [{{}}, [1], "c", "d", "e", "f"])
@pytest.mark.parametrize("policy", [1, 2, 3])
def test_it(option, policy): taken.append((str(option), policy))

def test_told(): print("taken", len(taken), *(sum(policy == one for _, policy in taken) for one in (1, 2, 3)), len(dict(taken)))
"""


@pytest.mark.parametrize(("mark", "told"), [("each_value", "taken 6 2 2 2 6"), ("each_value(times=2)", "taken 12 4 4 4 6")])
def test_each_value_of_a_product_is_there_at_every_change_and_all_of_it_in_the_long_run(
    pytester: pytest.Pytester, mark: str, told: str
) -> None:
    tests = PRODUCT.format(mark=f"@pytest.mark.{mark}")
    assert told in tell(pytester, tests)
    assert "taken 18 6 6 6 6" in tell(pytester, tests, "--long")


OPTIONS = """
import pytest

taken = []

@pytest.mark.pairs
@pytest.mark.parametrize("costs", [{}, [1], "c"])
@pytest.mark.parametrize("clock", [True, False])
@pytest.mark.parametrize(("policy", "round"), [("las", 0), ("las", 60), ("fifo", 0), ("fifo", 60)])
@pytest.mark.parametrize("placement", ["a", "b", "c", "d"])
def test_it(costs, clock, policy, round, placement): taken.append((str(costs), clock, policy, round, placement))

def test_told():
    met = [len({(case[one], case[other]) for case in taken}) for one in range(5) for other in range(one)]
    print("taken", len(taken), "met", *met)
"""


def test_every_two_values_of_a_product_meet_at_every_change_and_all_of_them_in_the_long_run(pytester: pytest.Pytester) -> None:
    every_two = "met 6 6 4 6 4 4 12 8 8 8"
    assert re.search(rf"taken 1[2-5] {every_two}", tell(pytester, OPTIONS))  # twelve are the fewest: three costs times four placements
    assert f"taken 96 {every_two}" in tell(pytester, OPTIONS, "--long")


def test_one_in_three_of_a_long_list_is_there_at_every_change_and_all_of_it_in_the_long_run(pytester: pytest.Pytester) -> None:
    tests = "import pytest\n@pytest.mark.one_in(3)\n@pytest.mark.parametrize('k', range(7))\ndef test_it(k): print('case', k)\n"
    assert re.findall(r"case (\d)", tell(pytester, tests)) == ["0", "3", "6"]
    assert len(re.findall(r"case (\d)", tell(pytester, tests, "--long"))) == 7


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
