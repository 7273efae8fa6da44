"""Columns that note what is done to them, and a snapshot made of them.

Whatever cannot be noted (a branch on values, a sum over jobs, a loop, chance) ends the reading, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gantline.core.cluster_now import ClusterNow
from gantline.core.columns import Job
from gantline.core.estimates import HIGH, LOW
from gantline.engine.drivers.python_keys import expression
from gantline.engine.drivers.python_keys.expression import BOOL, FLOAT, INT, CannotReadError, Term
from gantline.engine.state import State

#: columns that no event changes
FIXED_FLOATS = {"arrival": Job.ARRIVAL, "priority": Job.PRIORITY, "weight": Job.WEIGHT, "deadline": Job.DEADLINE}
FIXED_INTS = {
    "gpus": Job.GPUS, "min_gpus": Job.MIN_GPUS, "max_gpus": Job.MAX_GPUS, "smallest": Job.SMALLEST,
    "user": Job.USER, "queue": Job.QUEUE, "app": Job.APP, "model": Job.MODEL,
    "option_first": Job.OPTION_FIRST, "option_count": Job.OPTION_COUNT,
}  # fmt: skip
#: columns that events change, or time; of those the last two change for jobs that wait
MOVING: dict[str, np.dtype[Any]] = {
    **dict.fromkeys(("attained", "attained_gpu", "done", "remaining", "estimate", "first_start", "last_start", "rate"), FLOAT),
    **dict.fromkeys(("restarts", "preemptions", "held", "nodes_held", "phase"), INT),
    **dict.fromkeys(("running", "progressing"), BOOL),
    "waiting": FLOAT,
}
AGES = ("waiting",)
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_FAST_POWERS = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal, 1: np.positive}  # as NumPy's own operator takes them


def refuse(why: str) -> NoReturn:
    raise CannotReadError(why)


def _refusing(why: str) -> Callable[..., NoReturn]:
    def method(*_: Any, **__: Any) -> NoReturn:
        refuse(why)

    return method


class NotedColumn(NDArrayOperatorsMixin):
    """One number per job. It may be changed in place unless it belongs to the snapshot."""

    def __init__(self, node: Term, own: bool = True) -> None:
        self.node, self.own = node, own

    # --- what NumPy does with it ----------------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **more: Any) -> NotedColumn:
        if method != "__call__":
            refuse(f"{ufunc.__name__}.{method} over jobs")
        if more or ufunc.nout != 1 or ufunc.signature is not None:
            refuse(f"{ufunc.__name__} with options")
        made = NotedColumn(expression.call(ufunc, tuple(noted(one) for one in inputs)))
        return made if out is None else self._into(out, made)

    def _into(self, out: Any, made: NotedColumn) -> NotedColumn:
        (target,) = out
        if not isinstance(target, NotedColumn) or not target.own or not np.can_cast(made.node.kind, target.node.kind, "same_kind"):
            refuse("a result that is written into something else")
        target.node = expression.cast(made.node, target.node.kind)
        return target

    def __array_function__(self, function: Any, types: Any, inputs: Any, more: Any) -> Any:
        meaning = _MEANINGS.get(function)
        return refuse(f"np.{function.__name__} over jobs") if meaning is None else meaning(*inputs, **more)

    def __pow__(self, other: Any) -> NotedColumn:
        if type(other) in (int, float) and self.node.kind == FLOAT and not self.node.single and other in _FAST_POWERS:
            return NotedColumn(expression.call(_FAST_POWERS[other], (self.node,)))
        made: NotedColumn = np.power(self, other)
        return made

    # --- what it has of an array ----------------------------------------------------------------------------------------
    @property
    def dtype(self) -> np.dtype[Any]:
        return self.node.kind

    def astype(self, kind: Any, **_: Any) -> NotedColumn:
        return NotedColumn(expression.cast(self.node, np.dtype(kind)))

    def view(self, kind: Any) -> NotedColumn:
        if self.node.what != "fixed" or self.node.kind.itemsize != np.dtype(kind).itemsize:
            refuse("the bits of what changes")
        return NotedColumn(expression.fixed(np.ascontiguousarray(self.node.detail).view(kind)))

    def copy(self) -> NotedColumn:
        return NotedColumn(self.node)

    def clip(self, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> NotedColumn:
        return _clip(self, low, high, min=min, max=max)

    def round(self, decimals: int = 0) -> NotedColumn:
        return _round(self, decimals)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, NotedColumn) and place.node.kind == BOOL:
            return SomeJobs(self.node, place.node)
        if isinstance(place, slice) and place == slice(None):
            return NotedColumn(self.node)
        return refuse("single jobs, one by one")

    def __setitem__(self, place: Any, value: Any) -> None:
        if isinstance(place, slice) and place == slice(None):
            place, given = NotedColumn(Term("number", BOOL, detail=True, single=True)), noted(value)
        elif isinstance(place, NotedColumn) and place.node.kind == BOOL:
            if isinstance(value, SomeJobs) and value.chosen is not place.node:
                refuse("values of some jobs that are given to others")
            given = value.node if isinstance(value, SomeJobs) else noted(value)
            if not isinstance(value, SomeJobs) and not given.single:
                refuse("values of all jobs that are given to some")
        else:
            refuse("single jobs, one by one")
        if not self.own:
            refuse("a change of what the snapshot has lent")
        self.node = expression.where(place.node, expression.cast(given, self.node.kind), self.node)

    def __getattr__(self, name: str) -> Any:
        refuse(f".{name} of a column")

    __bool__ = _refusing("a branch on the values of jobs")
    __iter__ = __contains__ = __reversed__ = _refusing("a loop over jobs")
    __len__ = _refusing("the number of jobs")
    __float__ = __int__ = __index__ = _refusing("a column or the clock as a plain number")
    __array__ = _refusing("a column inside something that NumPy does not hand on (a list, an index, a function over jobs)")
    __hash__ = __str__ = __repr__ = __format__ = _refusing("a column as text")


class Count:
    """The number of jobs, with which columns can be made and nothing else."""

    __slots__ = ()
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refusing("the number of jobs")
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __pow__ = __neg__ = _refusing("the number of jobs")
    __eq__ = __ne__ = __hash__ = __bool__ = __index__ = __int__ = __float__ = _refusing("the number of jobs")
    __str__ = __repr__ = _refusing("the number of jobs")


class SomeJobs:
    """The values of some jobs, which may only be given to the same jobs of another column."""

    def __init__(self, node: Term, chosen: Term) -> None:
        self.node, self.chosen = node, chosen

    def __getattr__(self, name: str) -> Any:
        refuse("a computation over some of the jobs")

    __array_ufunc__ = None


def noted(value: Any) -> Term:
    """A column or a number as a node."""
    if isinstance(value, NotedColumn):
        return value.node
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, _NUMBERS):
        return expression.number(value)
    return refuse("a column together with something that is neither a column nor a number")


# --- functions of NumPy that mean one number per job ----------------------------------------------------------------------
def _where(condition: Any, yes: Any = None, no: Any = None) -> NotedColumn:
    if yes is None or no is None:
        refuse("positions of jobs (np.where with one argument)")
    return NotedColumn(expression.where(noted(condition), noted(yes), noted(no)))


def _select(conditions: Any, choices: Any, default: Any = 0) -> NotedColumn:
    made = noted(default)
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        if noted(condition).kind != BOOL:
            refuse("np.select by something that is neither true nor false")
        made = expression.where(noted(condition), noted(choice), made)
    return NotedColumn(made)


def _clip(column: Any, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> NotedColumn:
    made = noted(column)
    for limit, ufunc in ((min if low is None else low, np.maximum), (max if high is None else high, np.minimum)):
        made = made if limit is None else expression.call(ufunc, (made, noted(limit)))
    return NotedColumn(made)


def _nan_to_num(column: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> NotedColumn:
    made = noted(column)
    if made.kind != FLOAT or not copy:
        return NotedColumn(made) if copy else refuse("np.nan_to_num in place")
    top = np.finfo(np.float64).max
    nothing = expression.call(np.isnan, (made,))
    high, low = (expression.call(ufunc, (made, expression.number(bound))) for ufunc, bound in ((np.equal, np.inf), (np.equal, -np.inf)))
    made = expression.where(nothing, expression.number(nan), made)
    made = expression.where(high, expression.number(top if posinf is None else posinf), made)
    return NotedColumn(expression.where(low, expression.number(-top if neginf is None else neginf), made))


def _searchsorted(table: Any, column: Any, side: Any = "left", sorter: Any = None) -> NotedColumn:
    if (
        sorter is not None
        or isinstance(table, NotedColumn)
        or any(isinstance(one, NotedColumn) for one in (table if isinstance(table, tuple | list) else ()))
    ):
        refuse("a search among jobs")
    return NotedColumn(expression.search(table, noted(column), side))


def _digitize(column: Any, bins: Any, right: bool = False) -> NotedColumn:
    return _searchsorted(bins, column, "left" if right else "right")


def _take(table: Any, column: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> NotedColumn:
    if isinstance(table, NotedColumn) or axis not in (None, 0) or out is not None or mode != "raise":
        refuse("np.take with options, or of jobs")
    return NotedColumn(expression.take(table, noted(column)))


def _round(column: Any, decimals: int = 0, out: Any = None) -> NotedColumn:
    made = noted(column)
    if decimals != 0 or out is not None or made.kind != FLOAT:
        refuse("np.round to decimals")
    return NotedColumn(expression.call(np.rint, (made,)))


def constant(value: Any, kind: Any = None) -> NotedColumn:
    """The same number for every job."""
    made = noted(value)
    made = expression.cast(made, np.dtype(kind)) if kind is not None else made
    return NotedColumn(Term("number", made.kind, detail=made.kind.type(made.detail)) if made.what == "number" else made)


def _full_like(column: Any, value: Any, dtype: Any = None) -> NotedColumn:
    return constant(value, noted(column).kind if dtype is None else dtype)


_MEANINGS: dict[Any, Callable[..., NotedColumn]] = {
    np.where: _where, np.select: _select, np.clip: _clip, np.nan_to_num: _nan_to_num, np.searchsorted: _searchsorted,
    np.digitize: _digitize, np.take: _take, np.round: _round, np.around: _round, np.full_like: _full_like,
    np.zeros_like: lambda column, dtype=None: _full_like(column, 0, dtype), np.copy: lambda column: NotedColumn(noted(column)),
    np.ones_like: lambda column, dtype=None: _full_like(column, 1, dtype),
    np.empty_like: lambda column, dtype=None: _full_like(column, 0, dtype),
}  # fmt: skip


# --- the snapshot ---------------------------------------------------------------------------------------------------------
class NotedJobs:
    """All jobs of the run as columns that take notes."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __getattr__(self, name: str) -> Any:
        t = self._state.tables
        if name in ("estimate", "estimate_low", "estimate_high") and (name == "estimate" or t.metrics.keys().isdisjoint((LOW, HIGH))):
            known = bool((t.F[Job.ESTIMATE] >= t.F[Job.WORK]).all())  # else it is raised when it proves too low
            return NotedColumn(
                expression.fixed(t.F[Job.ESTIMATE], "estimate") if known else Term("column", FLOAT, detail="estimate", moves=True),
                own=False,
            )
        if name in FIXED_FLOATS:
            return NotedColumn(expression.fixed(t.F[FIXED_FLOATS[name]], name), own=False)
        if name in FIXED_INTS:
            return NotedColumn(expression.fixed(t.I[FIXED_INTS[name]], name), own=False)
        if name in MOVING:
            return NotedColumn(Term("column", MOVING[name], detail=name, moves=True, ages=name in AGES, name=name), own=False)
        return refuse(f"jobs.{name}")

    __iter__ = _refusing("a loop over jobs")
    __len__ = _refusing("the number of jobs")


class _NotedCluster:
    """What no event changes of a cluster without events of its own."""

    _known = ("gpus", "types", "nodes", "capacity", "node_gpus", "node_type", "racks")

    def __init__(self, state: State) -> None:
        self._now = ClusterNow(state.tables.lent, state.rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now, name) if name in self._known else refuse(f"cluster.{name}")


class NotedSnapshot:
    """A snapshot of columns that take notes."""

    def __init__(self, state: State) -> None:
        self.jobs = NotedJobs(state)
        self.now = NotedColumn(Term("column", FLOAT, detail="now", single=True, moves=True, ages=True), own=False)
        self.cluster = _NotedCluster(state)
        self.round, self.regime, self.seed, self.memory = state.regime.round, state.regime.name, state.seed, state.memory
        self.facts, self.costs, self.prices = state.facts, state.facts.costs, state.facts.prices
        self.min_run, self.latency = state.facts.min_run, state.facts.latency
        self._lent = state.tables.lent

    def __getattr__(self, name: str) -> Any:
        if name in ("users", "queues", "apps", "models"):
            return self._lent.names(name)
        return self._lent.queue_tree() if name == "queue_tree" else refuse(f"snapshot.{name}")
