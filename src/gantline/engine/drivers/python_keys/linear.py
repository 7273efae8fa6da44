"""Keys that are a sum over columns, number for number: those run on records, where a decision costs what changes.

They are a function of what was asked for, to which what moves may be added once, times a number, and a level in front: how many limits
attained service has reached. Every operation that is recognised is one that the loop on records does in the same order, so the bits
are the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.core.tables import Tables
from gantline.engine.declared_key import LinearKey
from gantline.engine.drivers.python_keys.expression import Term

_MOVING = ("attained", "attained_gpu", "remaining", "estimate")
_KNOWN = ("arrival", "estimate", "gpus", "priority")  # of what was asked for, records have these


class _Sum(NamedTuple):
    """``by * moving + fixed``, where either part may be missing."""

    fixed: Any = None
    moving: str = ""
    by: float = 1.0
    column: str = ""  # the one that `fixed` is, if records have it


def declare(key: Term, tables: Tables) -> tuple[LinearKey, Floats | None] | None:
    """The same key as a sum, and the numbers that stand in place of the priorities, if it needs any; None: it is no such sum."""
    rows = tables.F.shape[1]
    found = _levels(key, tables)
    if found is None:
        return None
    declared, total = found
    fixed = np.zeros(rows) if total.fixed is None else np.broadcast_to(np.asarray(total.fixed, dtype=np.float64), rows)
    if not (np.isfinite(fixed).all() and np.isfinite(total.by)):
        return None
    moving: dict[str, Any] = {total.moving: total.by} if total.moving else {}
    if total.column and total.column not in moving:
        moving[total.column] = 1.0
        return replace(declared, **moving), None
    needed = total.fixed is not None
    return replace(declared, priority=float(needed), **moving), fixed if needed else None


def _levels(key: Term, tables: Tables) -> tuple[LinearKey, _Sum] | None:
    """A sum, with a level in front of it or not."""
    total = _sum(key)
    if total is not None:
        return LinearKey(), total
    if not (_is(key, np.add) and len(key.inputs) == 2):
        return None
    for front, rest in (key.inputs, key.inputs[::-1]):
        level = _level(front)
        if level is None:
            continue
        inside = _sum(rest)
        if inside is not None:
            return level, inside
        never = _by_first_start(rest, tables)
        if never is not None:
            return replace(level, first_start=1.0, never_started=never), _Sum()
    return None


def _sum(node: Term) -> _Sum | None:
    """A key made of a product and a sum."""
    if node.still:
        return _Sum(node.detail, column=node.name if node.name in _KNOWN else "")
    if node.what == "column":
        return _Sum(None, node.detail) if node.detail in _MOVING else None
    if _is(node, np.negative):
        inner = _sum(node.inputs[0])
        return None if inner is None else _Sum(None if inner.fixed is None else -inner.fixed, inner.moving, -inner.by)
    if node.what != "call" or len(node.inputs) != 2:
        return None
    left, right = node.inputs
    if _is(node, np.add) or _is(node, np.subtract):
        sign = 1.0 if _is(node, np.add) else -1.0
        first, second = _sum(left), _sum(right)
        if first is not None and first.moving and first.fixed is None and right.still:
            return _Sum(sign * right.detail, first.moving, first.by)
        if second is not None and second.moving and second.fixed is None and left.still:
            return _Sum(left.detail, second.moving, sign * second.by)
    if _is(node, np.multiply):
        left, right = (left, right) if left.moves else (right, left)
        if left.what == "column" and left.detail in _MOVING:
            if right.what == "number":
                return _Sum(None, left.detail, float(right.detail))
            if left.detail == "remaining" and right.name == "gpus":
                return _Sum(None, "remaining_gpu")
    return None


def _level(node: Term) -> LinearKey | None:
    """How many limits attained service has reached, times a number."""
    step = 1.0
    if _is(node, np.multiply):
        left, right = node.inputs if node.inputs[1].what == "number" else node.inputs[::-1]
        if right.what != "number":
            return None
        node, step = left, float(right.detail)
    limits = _limits(node)
    if limits is None or not (step > 0.0 and np.isfinite(step)):
        return None
    column, reached = limits
    return LinearKey(level_by=column, thresholds=reached, level_step=step) if len(reached) else None


def _limits(node: Term) -> tuple[str, tuple[float, ...]] | None:
    """The column that is counted by, and the least service of each level but the first."""
    while node.what == "cast":
        node = node.inputs[0]
    if node.what == "search":
        table, side = node.detail
        limits = table if side == "right" else np.nextafter(table, np.inf)
        return _service(node.inputs[0], limits)
    if node.what == "where" and node.inputs[1].what == node.inputs[2].what == "number":
        yes, no = (float(one.detail) for one in node.inputs[1:])
        if (yes, no) == (1.0, 0.0):
            return _limits(node.inputs[0])
        return _limits_below(node.inputs[0]) if (yes, no) == (0.0, 1.0) else None
    return _compared(node, np.greater_equal, np.greater)


def _limits_below(node: Term) -> tuple[str, tuple[float, ...]] | None:
    return _compared(node, np.less, np.less_equal)


def _compared(node: Term, exact: np.ufunc, beyond: np.ufunc) -> tuple[str, tuple[float, ...]] | None:
    """Service at a limit or more; `beyond`: more than the limit."""
    if not (_is(node, exact) or _is(node, beyond)) or node.inputs[1].what != "number":
        return None
    limit = float(node.inputs[1].detail)
    return _service(node.inputs[0], np.array([limit if _is(node, exact) else np.nextafter(limit, np.inf)]))


def _service(node: Term, limits: Floats) -> tuple[str, tuple[float, ...]] | None:
    if node.what == "column" and node.detail in ("attained", "attained_gpu") and np.isfinite(limits).all() and (limits > 0.0).all():
        return node.detail, tuple(limits.tolist())
    return None


def _by_first_start(node: Term, tables: Tables) -> float | None:
    """First start, or a number plus the arrival for jobs that never started; that number."""
    if node.what != "where":
        return None
    nothing, never, first = node.inputs
    if not (_is(nothing, np.isnan) and nothing.inputs[0].detail == first.detail == "first_start" and never.what == "fixed"):
        return None
    arrival = tables.F[Job.ARRIVAL]
    number = float(np.round(never.detail[0] - arrival[0])) if len(arrival) else 0.0
    return number if np.array_equal(number + arrival, never.detail) else None


def _is(node: Term, ufunc: np.ufunc) -> bool:
    return node.what == "call" and node.detail[0] is ufunc
