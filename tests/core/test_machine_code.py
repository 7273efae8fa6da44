"""Kernels kept as machine code: a second process gives the same answers and never imports Numba."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gantline.core.jit import kernel
from gantline.core.machine_code.kernel import undisturbed
from gantline.core.machine_code.slots import OTHER_TYPES, let_go


class Pair(NamedTuple):
    first: Any
    factor: float


class Other(NamedTuple):
    first: Any
    factor: float


class Outer(NamedTuple):
    inner: Any
    count: int


@kernel
def scaled(pair: Pair, values: Any, number: int) -> tuple[float, float, int]:
    return pair.first[0] * pair.factor, values[1], number


@kernel
def weighed(outer: Outer, pair: Pair) -> float:
    return float(outer.count * outer.inner.factor * outer.inner.first[1] + pair.factor)


PROGRAM = """
import sys
from typing import NamedTuple
import numpy as np
from gantline.core.jit import compiled, kernel, kernel_from_zero, variant


class Bundle(NamedTuple):
    values: np.ndarray
    count: int


@kernel
def twice(values, at):
    return values[at] * 2.0


@kernel
def total(bundle, step, whole, start):
    found = start
    for at in range(bundle.count):
        found += twice(bundle.values, at) ** 0.5 + np.log(bundle.values[at])
    bundle.values[0] += 1.0
    return found + bundle.count // step if whole else found


@kernel
def look(values, at):
    return values.shape[0], values[at], values[at] > 0


@kernel
def corner(table):
    table[0, 0] = 7.0


WIDE = True


@kernel
def impossible(values):
    return values.no_such_thing


@kernel
def either(values):
    if WIDE:
        return impossible(values)
    return values[0]


slim = variant(either, "slim", WIDE=False)  # what cannot be compiled is not


@kernel_from_zero
def ahead(values, at):
    return values[at] + look(values, -at)[1]


@kernel
def around(values, at):
    return ahead(values, at) + values[-at]


@compiled
def fresh(count):
    return np.ones(count)


@compiled
def checked(values, at):
    if values[at] > 1:
        raise ValueError("too much")
    return np.ones(2)


@compiled
def ordered(values):
    return np.argsort(values, kind="mergesort")


@compiled
def summed(values, at):
    return checked(values, at).sum()


values = np.ones(5)
for count, whole in ((3, True), (3, True), (4, False)):
    print(total(Bundle(values, count), 2, whole, 1.5))
print(look(values, 1), look(np.arange(4), 1), look(values[::2], 1), look(np.array([False, True]), 1))
table = np.zeros((2, 3))
corner(table)
corner(table.T)
print(table.tolist(), values.tolist(), slim(values))
print(around(np.arange(1.0, 5.0), 1), ahead(np.arange(1.0, 5.0)[2:], -1))
try:
    print(look(values, 0), total(Bundle(values, 3), 0, True, 0.0))
except ArithmeticError as error:
    print(type(error).__name__)
print("numba" in sys.modules, file=sys.stderr)
if len(sys.argv) > 1:
    print(fresh(2).tolist(), summed(np.ones(1), 0))
    try:
        summed(np.arange(4), 3)
    except ValueError as error:
        print(error.args)
    print(ordered(np.array([3, 1, 2])).tolist())  # Numba sorts by functions that call each other
    import numba

    @numba.njit
    def count(end):
        for at in range(end):
            yield at

    @numba.jit(forceobj=True)
    def name(kinds):
        found = []
        for kind in kinds:
            found.append(kind.__name__)
        return found

    print(list(count(3)), name([int, str]))  # what Numba does for others is what it was
"""


ONE = (
    PROGRAM[: PROGRAM.index("@kernel\ndef look")]
    + """
print(total(Bundle(np.ones(2), 2), 2, True, 1.5))
print("numba" in sys.modules, file=sys.stderr)
"""
)


def start(folder: Path, *words: str, text: str = PROGRAM, place: str = "here") -> subprocess.Popen[str]:
    program = folder / place / "program.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(text, encoding="utf-8")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels")}
    return subprocess.Popen([sys.executable, str(program), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def end(program: subprocess.Popen[str]) -> tuple[str, bool]:
    """What it printed, and whether it needed Numba for it."""
    printed, told = program.communicate()
    assert program.returncode == 0, told
    return printed, "True" in told


def run(folder: Path, *words: str, text: str = PROGRAM, place: str = "here") -> tuple[str, bool]:
    """What the program prints with the kernels of that folder, and whether it needed Numba for it."""
    return end(start(folder, *words, text=text, place=place))


def without_more(printed: str) -> str:
    """What it prints up to the division by zero."""
    return printed[: printed.index("ArithmeticError\n")] + "ArithmeticError\n"


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("machine-code")
    printed, with_numba = run(folder, "more")
    assert with_numba
    return folder, printed


def test_a_second_process_calls_the_stored_code_without_numba_wherever_the_source_stands(compiled_once: tuple[Path, str]) -> None:
    folder, printed = compiled_once
    assert run(folder, place="elsewhere") == (without_more(printed), False)


def test_each_function_counts_from_the_end_of_an_array_or_does_not_whoever_calls_it(compiled_once: tuple[Path, str]) -> None:
    assert without_more(compiled_once[1]).splitlines()[-2] == f"{2.0 + 4.0 + 4.0} {2.0 + 4.0}"  # the last 2.0 lies in front of the array


def test_an_edit_of_a_called_kernel_is_noticed_and_two_processes_that_need_it_compile_it_once(compiled_once: tuple[Path, str]) -> None:
    folder, _ = compiled_once
    both = [start(folder, text=ONE.replace("* 2.0", "* 8.0"), place=place) for place in ("one", "two")]
    (first, compiled_it), (second, compiled_too) = map(end, both)
    assert float(first) == 1.5 + 2 * 8.0**0.5 + 1
    assert first == second
    assert compiled_it + compiled_too == 1


def test_a_division_by_zero_is_an_error_and_functions_that_allocate_go_through_numba(compiled_once: tuple[Path, str]) -> None:
    """The error is the stored code's, too, whose process prints the same."""
    printed = compiled_once[1].splitlines()
    assert printed[-5:] == ["ArithmeticError", "[1.0, 1.0] 2.0", "('too much',)", "[1, 2, 0]", "[0, 1, 2] ['int', 'str']"]


def test_damaged_code_is_compiled_anew(compiled_once: tuple[Path, str]) -> None:
    folder, printed = compiled_once
    stored = sorted((folder / "kernels").glob("*total*.o"))
    assert stored
    for path in stored:
        path.write_bytes(path.read_bytes()[:-20] + b"0" * 20)
    assert run(folder) == (without_more(printed), True)


def test_a_kernel_sees_new_bundles_and_new_arrays_and_keeps_none_alive() -> None:
    """What is the same object as in the last call stays in its slots; whatever else is given is written anew."""
    one, two = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    bundle = Pair(one, 10.0)
    seen = [scaled(*args) for args in ((bundle, two, 5), (bundle, one, 6), (Pair(two, 2.0), two, 7), (bundle, two.copy(), 8))]
    assert seen == [(10.0, 4.0, 5), (10.0, 2.0, 6), (6.0, 4.0, 7), (10.0, 4.0, 8)]
    entry = next(iter(scaled._entries.values()))  # type: ignore[attr-defined]
    for wrong in (
        (one, two, 5),
        (bundle, two),
        (bundle, np.arange(6.0)[::2], 5),
        (bundle, two, 5.0),
        (Pair(one, 1), two, 5),
        (None, two, 5),
    ):
        assert entry.call(wrong) is OTHER_TYPES, wrong
    assert entry.call((bundle, two, 9)) == (10.0, 4.0, 9)
    gone = weakref.ref(one)
    del bundle, one, wrong
    let_go()
    gc.collect()
    assert gone() is None


def test_tuples_within_tuples_are_told_apart_by_their_classes() -> None:
    inner = Pair(np.array([1.0, 2.0]), 4.0)
    assert weighed(Outer(inner, 3), inner) == 3 * 4.0 * 2.0 + 4.0
    assert weighed(Outer(inner, 5), Pair(inner.first, 1.0)) == 5 * 4.0 * 2.0 + 1.0
    entry = next(iter(weighed._entries.values()))  # type: ignore[attr-defined]
    assert entry.call((Outer(Other(*inner), 3), inner)) is OTHER_TYPES


def test_nobody_watches_numba_at_work_and_whoever_watched_goes_on_watching() -> None:
    seen: list[str] = []

    def watch(frame: object, event: str, called: object) -> None:
        seen.append(event)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with undisturbed():
            quiet, collects = len(seen), gc.isenabled()
            len("compiling")
            assert len(seen) == quiet
        assert sys.getprofile() is watch
    finally:
        sys.setprofile(before)
    assert not collects
    assert gc.isenabled()


@kernel
def handed_back(values: Any) -> Pair:
    return Pair(values, 1.0)


def test_a_kernel_that_hands_arrays_out_is_not_called_from_python() -> None:
    """Kernels count no references: what Numba would make of these arrays for Python would be freed twice."""
    with pytest.raises(TypeError, match="returns numbers alone"):
        handed_back(np.zeros(3))
