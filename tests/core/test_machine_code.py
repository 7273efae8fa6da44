"""Kernels kept as machine code: a second process gives the same answers and never imports Numba."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
        raise ValueError("too much", values[at])
    return np.ones(2)


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
        summed(np.arange(4), 3)  # the message is made inside a function that was only linked in
    except ValueError as error:
        print(error.args)
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
    assert printed[-4:] == ["ArithmeticError", "[1.0, 1.0] 2.0", "('too much', 3)", "[0, 1, 2] ['int', 'str']"]


def test_damaged_code_is_compiled_anew(compiled_once: tuple[Path, str]) -> None:
    folder, printed = compiled_once
    stored = sorted((folder / "kernels").glob("*total*.o"))
    assert stored
    for path in stored:
        path.write_bytes(path.read_bytes()[:-20] + b"0" * 20)
    assert run(folder) == (without_more(printed), True)


def test_a_kernel_sees_new_bundles_and_new_arrays_and_keeps_none_alive() -> None:
    """What was looked up for the last call is looked up again when the bundle, or an array of its own, is another one."""
    import gc
    import weakref
    from typing import Any, NamedTuple

    import numpy as np

    from gantline._machine_code.slots import Entry, describe, let_go

    class Pair(NamedTuple):
        first: Any
        factor: float

    entry = Entry(describe((Pair(np.ones(2), 1.0), np.ones(2), 1)), 0, [], None)
    seen: list[tuple[float, float, int]] = []

    def look(into: Any, slots: Any) -> int:
        ints, floats = entry._ints, entry._floats
        values = [np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * 2).from_address(ints[at])) for at in (4, 12)]
        seen.append((values[0][0] * floats[7], values[1][1], ints[15]))
        return 0

    entry.call = entry.calling(look)
    one, two = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    bundle = Pair(one, 10.0)
    for args in ((bundle, two, 5), (bundle, one, 6), (Pair(two, 2.0), two, 7), (bundle, two.copy(), 8)):
        assert entry.call(args) is None
    assert seen == [(10.0, 4.0, 5), (10.0, 2.0, 6), (6.0, 4.0, 7), (10.0, 4.0, 8)]
    for wrong in (
        (one, two, 5),
        (bundle, two),
        (bundle, np.arange(6.0)[::2], 5),
        (bundle, two, 5.0),
        (Pair(one, 1), two, 5),
        (None, two, 5),
    ):
        assert entry.call(wrong) is not None, wrong
    gone = weakref.ref(one)
    del bundle, one, args, wrong
    let_go()
    gc.collect()
    assert gone() is None


def test_of_several_bundles_only_those_that_are_new_are_written_anew() -> None:
    from typing import Any, NamedTuple

    import numpy as np

    from gantline._machine_code.slots import OTHER_TYPES, Entry, describe

    class Inner(NamedTuple):
        values: Any
        count: int

    class Outer(NamedTuple):
        inner: Inner
        factor: float

    def given(k: int) -> tuple[Any, ...]:
        return Outer(Inner(np.full(k, 1.0), k), k / 2), np.arange(k), Inner(np.full(2 * k, 3.0), -k), k

    a, b = given(3), given(4)
    kept = Entry(describe(a), 0, [], None)
    kept.call = kept.calling(lambda into, slots: 0)
    for args in (a, (a[0], *b[1:]), (b[0], *a[1:]), (b[0], a[1], b[2], 7), a):
        written: list[int] = []
        write = kept._write
        kept._write = lambda leaf, value, done=written, write=write: done.append(leaf) or write(leaf, value)  # type: ignore[method-assign]
        assert kept.call(args) is None
        kept._write = write  # type: ignore[method-assign]
        fresh = Entry(describe(a), 0, [], None)
        fresh.call = fresh.calling(lambda into, slots: 0)
        fresh.call(args)
        assert (kept._slots == fresh._slots).all()
    assert sorted(written) == [0, 1, 2, 4, 5]  # both bundles, but not the array that stayed
    assert kept.call((a[0], a[1], a[0], 1)) is OTHER_TYPES
    assert kept.call(b) is None


def test_nobody_watches_numba_at_work_and_whoever_watched_goes_on_watching() -> None:
    import gc
    import sys

    from gantline._machine_code.kernel import undisturbed

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


def test_what_a_compilation_leaves_behind_waits_for_a_full_collection() -> None:
    import gc

    from gantline._machine_code.kernel import undisturbed

    with undisturbed():
        left = [[] for _ in range(5)]
    assert sum(any(one is known for one in left) for known in gc.get_objects(generation=2)) == 5
    assert gc.get_freeze_count() == 0


def test_numba_is_patched_only_while_a_kernel_of_ours_is_compiled() -> None:
    """Also where kernels are compiled for other kernels; what a user compiles goes Numba's own way."""
    from numba.core.postproc import PostProcessor

    from gantline._machine_code.front_end import patched_numba

    theirs = PostProcessor.run
    with patched_numba():
        ours = PostProcessor.run
        with patched_numba():
            assert PostProcessor.run is ours
        assert PostProcessor.run is ours
    assert ours is not theirs
    assert PostProcessor.run is theirs
    with pytest.raises(KeyError), patched_numba():
        raise KeyError("compilation fails")
    assert PostProcessor.run is theirs


def test_a_numba_that_is_too_new_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba
    from numba.core.postproc import PostProcessor

    from gantline._machine_code import front_end

    assert front_end.is_known(numba.__version__)
    newest = ".".join(map(str, front_end.BELOW))
    assert not any(map(front_end.is_known, (f"{newest}.0", f"{newest}.0rc1", "1.0", "0+unknown")))
    monkeypatch.setattr(numba, "__version__", f"{newest}.0")
    monkeypatch.setattr(front_end, "_replacements", front_end._replacements.__wrapped__)
    theirs = PostProcessor.run
    with front_end.patched_numba():
        assert PostProcessor.run is theirs
