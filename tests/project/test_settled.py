"""What was tested as machine code and is as it was then runs as Python; what has changed is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import settled
from tests.settled import Settled, read_settled, run_settled_plainly, types_of, versions, write_settled

from gantline._machine_code import Kernel
from gantline._machine_code.slots import OTHER_TYPES, describe

CALLED: list[str] = []  # a list cannot be read by machine code, and has no fingerprint


def double(at: int) -> int:
    return 2 * at


def wrapped(at: np.int64) -> np.int64:
    return at * at


def told(at: int) -> int:
    CALLED.append("as Python")
    return at


class Code:
    """Machine code of a kernel for some types: it says where it is from."""

    def __init__(self, kernel: Kernel, key: str, origin: str) -> None:
        self.key, self.answer = key, f"{kernel.__name__} {origin}"

    def call(self, args: tuple[Any, ...]) -> Any:
        return self.answer if describe(args) == self.key else OTHER_TYPES


@pytest.fixture
def made() -> Iterator[Callable[..., Kernel]]:
    """Kernels of which no machine code is stored: what is made of them says so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Kernel, "_make", lambda kernel, key, args: Code(kernel, key, "compiled"))
        yield lambda function: Kernel(function, {"_nrt": False}, storable=True)


def as_it_is(kernel: Kernel, *args: Any) -> dict[str, Settled]:
    return {kernel.full_name: Settled(kernel.fingerprint, frozenset([types_of(args)]))}


def test_a_kernel_that_is_as_it_was_is_not_compiled(made: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    same, changed, new = made(double), made(wrapped), made(told)
    other = Settled("another", as_it_is(changed, np.int64(3))[changed.full_name].types)
    run_settled_plainly(monkeypatch, as_it_is(same, 3) | {changed.full_name: other})
    assert [same(3), same(4)] == [6, 8]
    assert changed(np.int64(3)) == "wrapped compiled"
    assert new(3) == "told compiled"


def test_what_a_kernel_calls_that_runs_as_python_does_so_too(made: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    inner = made(told)
    outer = made(lambda at: inner(at))
    monkeypatch.setattr(outer, "fingerprint", "known")
    run_settled_plainly(monkeypatch, as_it_is(outer, 5))
    CALLED.clear()
    assert outer(5) == 5
    assert CALLED == ["as Python"]
    assert inner(5) == "told compiled"


def test_machine_code_that_is_stored_is_used(made: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes less time than Python, and is what users run."""
    kernel, key = made(double), describe((3,))
    monkeypatch.setattr(Kernel, "_stored", lambda kernel, wanted: Code(kernel, key, "stored") if wanted == key else None)
    both = frozenset([types_of((3,)), types_of((3.0,))])
    run_settled_plainly(monkeypatch, {kernel.full_name: Settled(kernel.fingerprint, both)})
    assert kernel(3) == "double stored"
    assert kernel(3.0) == 6.0


def test_numbers_turn_over_as_in_machine_code_without_a_warning(made: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = made(wrapped)
    run_settled_plainly(monkeypatch, as_it_is(kernel, np.int64(1)))
    assert kernel(np.int64(2**62)) == 0


def test_with_arguments_of_other_types_it_is_compiled(made: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that hands over another kind of array, or another bundle, may have broken it."""
    kernel = made(wrapped)
    table = np.ones((2, 3))
    run_settled_plainly(monkeypatch, as_it_is(kernel, table))
    assert (kernel(table * 2) == 4.0).all()
    sealed = table.copy()
    sealed.flags.writeable = False
    for other in (table.T, table.astype(np.float32), table[0], sealed, (table,), 2.0):
        assert kernel(other) == "wrapped compiled"
    assert (kernel(table) == 1.0).all()


def test_with_other_versions_everything_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settled.txt"
    written = {"a.kernel": Settled("12ab", frozenset(["1", "2"])), "another.kernel": Settled("34cd", frozenset())}
    write_settled(written, "# why\n", path)
    assert path.read_text(encoding="utf-8") == f"# why\n{versions()}\na.kernel 12ab 1 2\nanother.kernel 34cd\n"
    assert read_settled(path) == written
    monkeypatch.setattr(settled, "versions", lambda: "Numba 99")
    assert read_settled(path) == {}
    assert read_settled(tmp_path / "nowhere") == {}


def test_the_list_names_kernels_that_there_are() -> None:
    rows = [line.split() for line in settled.LIST.read_text(encoding="utf-8").splitlines() if line.startswith("gantline.")]
    assert len(rows) > 50
    for name, mark, *types in rows:
        module, _, function = name.rpartition(".")
        assert function in source_of(module), f"{name} is gone: `make settled` writes tests/settled.txt anew"
        assert [len(word) for word in (mark, *types)] == [32, *[8] * len(types)]


def source_of(module: str) -> str:
    path = Path(__file__).parents[2] / "src" / Path(*module.split("."))
    file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    return file.read_text(encoding="utf-8") if file.exists() else ""


def test_a_run_compiles_them_when_it_is_asked_to(request: pytest.FixtureRequest) -> None:
    """As `make test-long` and `make settled` do."""
    plainly: Any = Kernel.__call__
    every = request.config.getoption("--compiled") or request.config.getoption("--long")
    assert (plainly.__module__ == settled.__name__) is not bool(every)
