"""What a key does to its columns, as a tree: each node is one number per job, or one for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT, INT, BOOL = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_)
KINDS = (FLOAT, INT, BOOL)


class CannotReadError(BaseException):
    """The key does something that only the policy itself can; no handler for errors in it should take this for its own."""


@dataclass(frozen=True, eq=False)
class Term:
    """One step of a key; `what` says how to understand `detail`.

    ============  ==================================================================================
    ``number``    one number, `detail`
    ``fixed``     what no event changes: an array over all rows of the run
    ``column``    something that changes, named `detail`
    ``call``      `detail` is a ufunc and the types of its loop
    ``where``     first input chooses between the other two
    ``search``    how many entries of a sorted table lie before; `detail` is the table and the side
    ``take``      entries of the table `detail`
    ``cast``      another kind of number
    ============  ==================================================================================
    """

    what: str
    kind: np.dtype[Any]
    inputs: tuple[Term, ...] = ()
    detail: Any = None
    single: bool = False  # one number for all jobs
    moves: bool = False  # something that happens, or time, may change it
    ages: bool = False  # time alone changes it for jobs that wait
    name: str = ""  # of the column that it is, unchanged

    @property
    def still(self) -> bool:
        """Whether it is known now, for good."""
        return self.what in ("number", "fixed")


def step(what: str, kind: np.dtype[Any], inputs: tuple[Term, ...], detail: Any = None) -> Term:
    """A node made of others."""
    if kind not in KINDS:
        raise CannotReadError(f"numbers of the kind {kind}")
    single, moves, ages = all(one.single for one in inputs), any(one.moves for one in inputs), any(one.ages for one in inputs)
    return Term(what, kind, inputs, detail, single, moves, ages)


def number(value: Any) -> Term:
    """A plain number of the policy."""
    return Term("number", _numeric(value.dtype if isinstance(value, np.generic) else np.asarray(value).dtype), detail=value, single=True)


def fixed(values: NDArray[Any], name: str = "") -> Term:
    """What no event changes, for all rows at once."""
    return Term("fixed", _numeric(values.dtype), detail=values, name=name)


def _numeric(kind: np.dtype[Any]) -> np.dtype[Any]:
    """What is known may be numbers of any kind, as long as nothing that changes is added to it."""
    if kind.kind not in "biuf":
        raise CannotReadError(f"numbers of the kind {kind}")
    return kind


def cast(node: Term, kind: np.dtype[Any]) -> Term:
    """The same number as another kind."""
    if node.kind == kind:
        return node
    if node.what == "number":
        return Term("number", kind, detail=kind.type(node.detail), single=True)
    if node.what == "fixed":
        return fixed(node.detail.astype(kind), node.name)
    if kind == BOOL:
        return call(np.not_equal, (node, number(0)))
    return step("cast", kind, (node,))


def call(ufunc: np.ufunc, inputs: tuple[Term, ...]) -> Term:
    """What a ufunc makes of them: at once where all is known, else as NumPy would choose its loop."""
    if all(one.still for one in inputs):
        made = ufunc(*(one.detail for one in inputs))
        return fixed(made) if np.ndim(made) else Term("number", number(made).kind, detail=made, single=all(one.single for one in inputs))
    if all(one.single for one in inputs):
        _plain_python(ufunc, inputs)
    chosen = ufunc.resolve_dtypes((*(_promoted(one) for one in inputs), None))
    if any(kind not in KINDS for kind in chosen):
        raise CannotReadError(f"numbers of the kinds {', '.join(map(str, chosen))}")
    types = "".join(kind.char for kind in chosen[:-1]) + "->" + chosen[-1].char
    given = tuple(cast(one, kind) for one, kind in zip(inputs, chosen))
    return step("call", chosen[-1], given, (ufunc, types))


def where(condition: Term, yes: Term, no: Term) -> Term:
    """`numpy.where`."""
    if all(one.still for one in (condition, yes, no)):
        made = np.where(condition.detail, yes.detail, no.detail)
        return fixed(made) if made.ndim else number(made[()])
    kind = np.result_type(*(_sample(one) for one in (yes, no)))
    return step("where", kind, (cast(condition, BOOL), cast(yes, kind), cast(no, kind)))


def search(table: NDArray[Any], node: Term, side: Any) -> Term:
    """`numpy.searchsorted` in a table of numbers that do not fall."""
    table = np.asarray(table)
    if table.ndim != 1 or table.dtype.kind not in "iuf" or side not in ("left", "right"):
        raise CannotReadError("a search in something that is not a row of numbers")
    table = table.astype(FLOAT)
    if np.isnan(table).any() or (np.diff(table) < 0.0).any():
        raise CannotReadError("a search in numbers that are not sorted")
    if node.what == "fixed":
        return fixed(np.searchsorted(table, node.detail, side=side))
    return step("search", INT, (cast(node, FLOAT),), (table, side))


def take(table: NDArray[Any], node: Term) -> Term:
    """Entries of a row of numbers by whole numbers, from the end if they are below zero."""
    table = np.asarray(table)
    if table.ndim != 1 or not len(table) or node.kind != INT:
        raise CannotReadError("an index that is not a whole number, or a table that is not a row")
    if table.dtype.kind in "iu":
        table = table.astype(INT)
    if table.dtype not in (FLOAT, INT):
        raise CannotReadError(f"a table of the kind {table.dtype}")
    if node.what == "fixed":
        return fixed(table[node.detail])
    return step("take", table.dtype, (node,), table)


def _promoted(node: Term) -> Any:
    """How NumPy sees it when it chooses a loop: plain numbers take the kind of the others."""
    if node.what == "number" and type(node.detail) in (int, float):
        return type(node.detail)
    return node.kind


def _sample(node: Term) -> Any:
    return node.detail if node.what == "number" else np.empty(0, dtype=node.kind)


def _plain_python(ufunc: np.ufunc, inputs: tuple[Term, ...]) -> None:
    """The clock is a plain number, and Python does what a ufunc would not: it raises, or rounds a power in its own way."""
    divides = ufunc in (np.true_divide, np.floor_divide, np.remainder)
    simple = ufunc in (np.add, np.subtract, np.multiply, np.negative)
    compares = ufunc in (np.less, np.less_equal, np.greater, np.greater_equal)
    if not (simple or compares or (divides and inputs[1].what == "number" and inputs[1].detail != 0)):
        raise CannotReadError(f"{ufunc.__name__} of the clock alone")
