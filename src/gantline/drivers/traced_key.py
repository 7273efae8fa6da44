"""A key written in Python, read once: if it is arithmetic on columns, the compiled loop can do without asking again.

`key()` is called with columns that note what is done to them. Columns that never change are numbers, for all jobs at once; those that
move while a gang runs (attained, remaining) may be multiplied by a number and added to the rest. Whatever else a key does (a look at the
clock, a branch on values, a sum over jobs, another function of what moves) cannot be read this way, and the policy is asked at every
decision as before. What is read gives the very bits that NumPy would have computed, so that ties stay ties.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gantline.core import columns as c
from gantline.core.arrays import Floats
from gantline.core.policy import LinearKey, OrderPolicy, Policy
from gantline.engine.state import State

#: columns that no event changes, and those that move while a gang runs
_FIXED_FLOATS = {"arrival": c.ARRIVAL, "priority": c.PRIORITY, "weight": c.WEIGHT, "deadline": c.DEADLINE}
_FIXED_INTS = {
    "gpus": c.GPUS, "min_gpus": c.MIN_GPUS, "max_gpus": c.MAX_GPUS, "smallest": c.SMALLEST,
    "user": c.USER, "queue": c.QUEUE, "app": c.APP, "model": c.MODEL,
}  # fmt: skip
_MOVING = ("attained", "attained_gpu", "remaining")
_ELEMENTWISE = {np.where, np.clip, np.nan_to_num, np.isclose}
_TURNED = {np.add: 1.0, np.subtract: -1.0}


class _CannotReadError(BaseException):
    """The key does something that only the policy itself can; no handler for errors in it should take this for its own."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise _CannotReadError


class _Column(NDArrayOperatorsMixin):
    """``by * moving + fixed``, where either part may be missing."""

    def __init__(self, fixed: Any = None, moving: str = "", by: float = 1.0, name: str = "") -> None:
        self.fixed, self.moving, self.by, self.name = fixed, moving, by, name

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> _Column:
        if method != "__call__" or more or ufunc.nout != 1 or ufunc.signature is not None:
            _refuse()
        if any(not (isinstance(one, _Column) or np.isscalar(one)) for one in inputs):
            _refuse()
        if all(not (isinstance(one, _Column) and one.moving) for one in inputs):
            return _Column(ufunc(*(one.fixed if isinstance(one, _Column) else one for one in inputs)))
        return _combined(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, inputs: Any, more: Any) -> _Column:
        columns = [one for one in inputs if isinstance(one, _Column)]
        if function not in _ELEMENTWISE or more or any(one.moving for one in columns):
            _refuse()
        if any(not (isinstance(one, _Column) or np.isscalar(one)) for one in inputs):
            _refuse()
        return _Column(function(*(one.fixed if isinstance(one, _Column) else one for one in inputs)))

    def astype(self, kind: Any, **_: Any) -> _Column:
        """Another kind of number; what moves is of the kind float already."""
        if self.moving:
            return self if np.dtype(kind) == np.float64 else _refuse()
        return _Column(self.fixed.astype(kind))

    def __getattr__(self, name: str) -> Any:
        _refuse()

    __bool__ = __len__ = __iter__ = __getitem__ = __array__ = __float__ = _refuse
    __int__ = __index__ = __hash__ = __str__ = __repr__ = _refuse


def _combined(ufunc: np.ufunc, *inputs: Any) -> _Column:
    """An operation on what moves, where the loop computes the same bits: one product, then one sum."""
    if ufunc is np.negative:
        (one,) = inputs
        return _Column(None if one.fixed is None else -one.fixed, one.moving, -one.by)
    left: Any
    right: Any
    left, right = inputs if len(inputs) == 2 else (None, None)
    if ufunc in _TURNED:
        sign = _TURNED[ufunc]
        if isinstance(left, _Column) and left.moving and left.fixed is None and _still(right):
            return _Column(sign * _number(right), left.moving, left.by)
        if _still(left) and right.moving and right.fixed is None:
            return _Column(_number(left), right.moving, sign * right.by)
    if ufunc is np.multiply:
        left, right = sorted(inputs, key=lambda one: not (isinstance(one, _Column) and bool(one.moving)))
        if left.fixed is None and left.by == 1.0 and np.isscalar(right):
            by: Any = right
            return _Column(None, left.moving, float(by))
        if left.fixed is None and left.by == 1.0 and left.moving == "remaining" and isinstance(right, _Column) and right.name == "gpus":
            return _Column(None, "remaining_gpu")
    return _refuse()


def _still(value: Any) -> bool:
    return bool(np.isscalar(value)) or (isinstance(value, _Column) and not value.moving)


def _number(value: Any) -> Any:
    return value.fixed if isinstance(value, _Column) else value


class _Jobs:
    """All jobs of the run as columns that take notes."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __getattr__(self, name: str) -> _Column:
        F, I = self._state.tables.F, self._state.tables.I
        if name in _FIXED_FLOATS:
            return _Column(F[_FIXED_FLOATS[name]], name=name)
        if name in _FIXED_INTS:
            return _Column(I[_FIXED_INTS[name]], name=name)
        if name in _MOVING:
            return _Column(None, name)
        if name == "estimate" and (F[c.ESTIMATE] >= F[c.WORK]).all():  # else it is raised when it proves too low
            return _Column(F[c.ESTIMATE], name=name)
        return _refuse()

    __len__ = __iter__ = _refuse


class _Question:
    """A snapshot that has nothing but jobs."""

    def __init__(self, state: State) -> None:
        self.jobs = _Jobs(state)

    def __getattr__(self, name: str) -> Any:
        _refuse()


def read_key(policy: Policy, state: State) -> tuple[LinearKey, Floats] | None:
    """The key of a policy that is nothing but a key, and the numbers that stand in place of the priorities; None: it must be asked."""
    kind: Any = type(policy)
    if not isinstance(policy, OrderPolicy) or kind.decide is not OrderPolicy.decide or kind.valid_until is not OrderPolicy.valid_until:
        return None
    question: Any = _Question(state)
    try:
        with np.errstate(all="ignore"):
            found: Any = policy.key(question)
    except (_CannotReadError, Exception):  # a mistake is the policy's own, when it is asked
        return None
    if not isinstance(found, _Column):
        return None
    rows = state.tables.F.shape[1]
    fixed = np.zeros(rows) if found.fixed is None else np.broadcast_to(np.asarray(found.fixed, dtype=np.float64), rows)
    if not (np.isfinite(fixed).all() and np.isfinite(found.by)):
        return None
    moving: dict[str, Any] = {found.moving: found.by} if found.moving else {}
    return LinearKey(priority=0.0 if found.fixed is None else 1.0, **moving), fixed
