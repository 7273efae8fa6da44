"""A key written in Python, read once: it is called with columns that note what is done to them, and what they note is a sum of columns.

What is read is number for number what the compiled loops compute, so ties stay ties. A key that is anything else is asked at every
decision, and the reason is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Real
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gantline.core.arrays import Floats
from gantline.core.columns import HIGH, LOW, Job
from gantline.core.policy import OrderPolicy, Policy, runs_by_key
from gantline.core.tables import Tables
from gantline.engine.declared_key import LinearKey
from gantline.engine.drivers.record_loop import at_asked_speed, why_not_on_records
from gantline.engine.state import State

Within = Callable[[Callable[[], Any]], Any]  # bounds a call

#: columns that no event changes
_FIXED_FLOATS = {"arrival": Job.ARRIVAL, "priority": Job.PRIORITY, "weight": Job.WEIGHT, "deadline": Job.DEADLINE}
_FIXED_INTS = {
    "gpus": Job.GPUS, "min_gpus": Job.MIN_GPUS, "max_gpus": Job.MAX_GPUS, "smallest": Job.SMALLEST,
    "user": Job.USER, "queue": Job.QUEUE, "app": Job.APP, "model": Job.MODEL,
    "option_first": Job.OPTION_FIRST, "option_count": Job.OPTION_COUNT,
}  # fmt: skip
_SERVICE = ("attained", "attained_gpu")
_MOVING = (*_SERVICE, "remaining", "first_start")
_ADDED_UP = (*_SERVICE, "remaining", "estimate")  # what a sum may hold of those that move
_OF_SUMS = ("arrival", "estimate", "gpus", "priority")  # what it may hold of those that are fixed
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_NO_SUM = "is no sum of columns, with a level in front or not"


class CannotReadError(BaseException):
    """The key does something that only the policy itself can; no handler for errors in it should take this for its own."""


def _refuse(why: str) -> NoReturn:
    raise CannotReadError(f"takes {why}")


def _refusing(why: str) -> Callable[..., NoReturn]:
    def method(*_: Any, **__: Any) -> NoReturn:
        _refuse(why)

    return method


# --- what a key may be ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Form:
    """``step * limits reached + by * moving + fixed``, where any part may be missing."""

    fixed: Any = None  # a number, or one for each row of the run
    column: str = ""  # the one that `fixed` is, unchanged
    moving: str = ""
    by: float = 1.0
    level_by: str = ""  # the service by which limits are reached
    limits: tuple[float, ...] = ()
    step: float = 1.0
    by_start: bool = False  # it is the first start, and `fixed` in jobs that never started
    flag: str = ""  # it is true or false: "below" the limit, or "unstarted"

    @property
    def still(self) -> bool:
        """Whether it is known, for good."""
        return self.fixed is not None and not (self.moving or self.limits or self.by_start)

    @property
    def bare(self) -> str:
        """The column that moves and is nothing else; empty: it is no such column."""
        return self.moving if self.fixed is None and self.by == 1.0 and not (self.limits or self.flag) else ""

    @property
    def is_level(self) -> bool:
        return bool(self.limits) and self.fixed is None and not (self.moving or self.flag)

    @property
    def is_sum(self) -> bool:
        return not (self.limits or self.flag or self.by_start) and self.moving != "first_start"


def _no_sum() -> NoReturn:
    raise CannotReadError(_NO_SUM)


def _added(left: Form, right: Form, sign: float) -> Form:
    if sign > 0.0 and left.is_level != right.is_level:
        level, rest = (left, right) if left.is_level else (right, left)
        if rest.is_sum or rest.by_start:
            return replace(rest, level_by=level.level_by, limits=level.limits, step=level.step)
    if left.is_sum and right.is_sum:
        if left.moving and left.fixed is None and right.still:
            return replace(left, fixed=sign * right.fixed, column=right.column if sign > 0.0 else "")
        if right.moving and right.fixed is None and left.still:
            return replace(right, fixed=left.fixed, column=left.column, by=sign * right.by)
    _no_sum()


def _multiplied(left: Form, right: Form) -> Form:
    left, factor = (right, left) if left.still else (left, right)
    if factor.still and np.ndim(factor.fixed) == 0:
        by = float(factor.fixed)
        if left.bare in _ADDED_UP:
            return replace(left, by=by)
        if left.is_level and left.step == 1.0 and 0.0 < by < math.inf:
            return replace(left, step=by)
    if left.bare == "remaining" and factor.column == "gpus":
        return Form(moving="remaining_gpu")
    _no_sum()


def _reaches(service: Form, limits: Floats, flag: str = "") -> Form:
    """How many limits are reached."""
    if service.bare not in _SERVICE or not (len(limits) and np.isfinite(limits).all() and (limits > 0.0).all()):
        _no_sum()
    return Form(level_by=service.bare, limits=tuple(limits.tolist()), flag=flag)


def _compared(ufunc: np.ufunc, service: Form, limit: Form) -> Form:
    if not limit.still or np.ndim(limit.fixed):
        _no_sum()
    exact = ufunc in (np.greater_equal, np.less)
    number = float(limit.fixed)
    least = np.array([number if exact else np.nextafter(number, np.inf)])
    return _reaches(service, least, "" if ufunc in (np.greater_equal, np.greater) else "below")


def _called(ufunc: np.ufunc, given: tuple[Form, ...]) -> Form:
    """What a function of NumPy makes of these."""
    if all(one.still for one in given):
        return Form(ufunc(*(one.fixed for one in given)))
    if ufunc is np.negative and given[0].is_sum:
        return replace(given[0], fixed=None if given[0].fixed is None else -given[0].fixed, column="", by=-given[0].by)
    if ufunc is np.add or ufunc is np.subtract:
        return _added(given[0], given[1], 1.0 if ufunc is np.add else -1.0)
    if ufunc is np.multiply:
        return _multiplied(*given)
    if ufunc in (np.greater_equal, np.greater, np.less_equal, np.less):
        return _compared(ufunc, *given)
    if ufunc is np.isnan and given[0].bare == "first_start":
        return Form(flag="unstarted")
    _no_sum()


# --- columns that note what is done to them -------------------------------------------------------------------------------
class NotedColumn(NDArrayOperatorsMixin):
    """One number per job of the run."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> NotedColumn:
        if method != "__call__":
            _refuse(f"{ufunc.__name__}.{method} over jobs")
        if more or ufunc.nout != 1 or ufunc.signature is not None:
            _refuse(f"{ufunc.__name__} with options")
        return NotedColumn(_called(ufunc, tuple(map(_noted, inputs))))

    def __array_function__(self, function: Any, types: Any, inputs: Any, more: Any) -> Any:
        if function not in _FUNCTIONS:
            _refuse(f"np.{function.__name__} over jobs")
        forms = [one.form for one in (*inputs, *more.values()) if isinstance(one, NotedColumn)]
        if all(one.still for one in forms):
            known = {name: value.form.fixed if isinstance(value, NotedColumn) else value for name, value in more.items()}
            return NotedColumn(Form(function(*(one.form.fixed if isinstance(one, NotedColumn) else one for one in inputs), **known)))
        meaning: Any = _FUNCTIONS[function]
        return NotedColumn(meaning(*inputs, **more)) if meaning is not None else _no_sum()

    def __pow__(self, other: Any) -> NotedColumn:
        """The operator of an array, which squares in its own way."""
        return NotedColumn(Form(self.form.fixed**other)) if self.form.still else _no_sum()

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.asarray(self.form.fixed).dtype if self.form.still else np.dtype(np.float64)

    def astype(self, kind: Any, **_: Any) -> NotedColumn:
        if self.form.still:
            return NotedColumn(replace(self.form, fixed=np.asarray(self.form.fixed).astype(kind)))
        return NotedColumn(self.form) if self.form.limits or np.dtype(kind) == np.float64 else _no_sum()

    def view(self, kind: Any) -> NotedColumn:
        if not self.form.still:
            _refuse("the bits of what changes")
        return NotedColumn(Form(np.ascontiguousarray(self.form.fixed).view(kind)))

    def copy(self) -> NotedColumn:
        return NotedColumn(self.form)

    def clip(self, *bounds: Any, **more: Any) -> NotedColumn:
        column: Any = self
        return np.clip(column, *bounds, **more)  # type: ignore[no-any-return]

    def round(self, decimals: int = 0) -> NotedColumn:
        column: Any = self
        return np.round(column, decimals)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        _refuse(f".{name} of a column")

    __getitem__ = __setitem__ = _refusing("single jobs, one by one")
    __bool__ = _refusing("a branch on the values of jobs")
    __iter__ = __contains__ = __reversed__ = _refusing("a loop over jobs")
    __len__ = _refusing("the number of jobs")
    __float__ = __int__ = __index__ = _refusing("a column as a plain number")
    __array__ = _refusing("a column inside something that NumPy does not hand on (a list, an index, a function over jobs)")
    __hash__ = __str__ = __repr__ = __format__ = _refusing("a column as text")


def _noted(value: Any) -> Form:
    """A column or a number as a form."""
    if isinstance(value, NotedColumn):
        return value.form
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, _NUMBERS):
        return Form(value)
    return _refuse("a column together with something that is neither a column nor a number")


def _where(condition: Any, yes: Any = None, no: Any = None) -> Form:
    if yes is None or no is None:
        _refuse("positions of jobs (np.where with one argument)")
    chosen, first, other = _noted(condition), _noted(yes), _noted(no)
    if chosen.flag == "unstarted" and first.still and other.bare == "first_start":
        return Form(first.fixed, by_start=True)
    if chosen.limits and len(chosen.limits) == 1 and first.still and other.still and np.ndim(first.fixed) == np.ndim(other.fixed) == 0:
        counts_up = (float(first.fixed), float(other.fixed)) == ((0.0, 1.0) if chosen.flag else (1.0, 0.0))
        if counts_up and chosen.step == 1.0:
            return replace(chosen, flag="")
    _no_sum()


def _searchsorted(table: Any, column: Any, side: Any = "left", sorter: Any = None) -> Form:
    if sorter is not None or not isinstance(column, NotedColumn):
        _refuse("a search among jobs")
    limits = np.asarray(table)
    if limits.ndim != 1 or limits.dtype.kind not in "iuf" or side not in ("left", "right"):
        _refuse("a search in something that is not a row of numbers")
    limits = limits.astype(np.float64)
    if np.isnan(limits).any() or (np.diff(limits) < 0.0).any():
        _refuse("a search in numbers that are not sorted")
    return _reaches(column.form, limits if side == "right" else np.nextafter(limits, np.inf))


def _digitize(column: Any, bins: Any, right: bool = False) -> Form:
    return _searchsorted(bins, column, "left" if right else "right")


#: functions of NumPy that mean one number per job, and what they mean of columns that move (None: nothing that could be read)
_FUNCTIONS: dict[Any, Callable[..., Form] | None] = {
    np.where: _where, np.searchsorted: _searchsorted, np.digitize: _digitize,
    np.clip: None, np.nan_to_num: None, np.round: None, np.around: None,
}  # fmt: skip


class _NotedJobs:
    """All jobs of the run as columns that take notes."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __getattr__(self, name: str) -> Any:
        t = self._tables
        if name == "estimate" or (name in ("estimate_low", "estimate_high") and t.metrics.keys().isdisjoint((LOW, HIGH))):
            known = bool((t.F[Job.ESTIMATE] >= t.F[Job.WORK]).all())  # else it is raised when it proves too low
            return NotedColumn(Form(t.F[Job.ESTIMATE], "estimate") if known else Form(moving="estimate"))
        if name in _FIXED_FLOATS:
            return NotedColumn(Form(t.F[_FIXED_FLOATS[name]], name))
        if name in _FIXED_INTS:
            return NotedColumn(Form(t.I[_FIXED_INTS[name]], name))
        if name in _MOVING:
            return NotedColumn(Form(moving=name))
        return _refuse(f"jobs.{name}")

    __iter__ = _refusing("a loop over jobs")
    __len__ = _refusing("the number of jobs")


class _NotedSnapshot:
    """A snapshot of columns that take notes."""

    def __init__(self, state: State) -> None:
        self.jobs = _NotedJobs(state.tables)
        self.round, self.regime, self.seed, self.memory = state.regime.round, state.regime.name, state.seed, state.memory

    def __getattr__(self, name: str) -> Any:
        return _refuse(f"snapshot.{name}")


# --- how long an order holds ----------------------------------------------------------------------------------------------
class Hint(Enum):
    """What a policy declares about how long its order holds (`valid_until()`).

    A true hint changes nothing but how often the policy is asked: a compiled loop looks whenever the order may change, so it needs none.
    """

    NONE = "it says nothing, or that it wants to be asked again"
    FOR_EVER = "the order holds until something happens"
    BY_SNAPSHOT = "a time that depends on the snapshot: a read key does without"
    OTHER = "a fixed time, no time at all, or a mistake: the policy is asked"


class _Nothing:
    """A snapshot of which nothing may be read."""

    def __getattr__(self, name: str) -> Any:
        _refuse(name)

    def __len__(self) -> int:
        _refuse("its length")


def time_said(said: Any) -> float | None:
    """How long a policy may declare its order to hold."""
    if said is None or (isinstance(said, Real) and not math.isnan(said)):
        return None if said is None else float(said)
    raise ValueError("no time")


def _hint_of(policy: OrderPolicy, within: Within) -> Hint:
    """Ask once, with a snapshot of which nothing may be read."""
    if type(policy).valid_until is OrderPolicy.valid_until:
        return Hint.NONE
    nothing: Any = _Nothing()
    try:
        said = time_said(within(lambda: policy.valid_until(nothing)))
    except CannotReadError:
        return Hint.BY_SNAPSHOT
    except KeyboardInterrupt:
        raise
    except BaseException:  # its mistake is reported when it is asked
        return Hint.OTHER
    return Hint.NONE if said is None else Hint.FOR_EVER if said == math.inf else Hint.OTHER


# --- from a policy to a key that compiled code evaluates ------------------------------------------------------------------
class Reading(NamedTuple):
    """What became of a key."""

    key: LinearKey | None = None  # None: the policy is asked at every decision
    numbers: Floats | None = None  # in place of the priorities, if the key needs any
    why_asked: str = ""
    why_tables: str = ""  # why it is not evaluated on records, though it is a sum
    hint: Hint = Hint.NONE

    @property
    def on_records(self) -> bool:
        return self.key is not None and not self.why_tables


def plainly(call: Callable[[], Any]) -> Any:
    """Call a policy without bounds."""
    return call()


def read_key(policy: Policy, state: State, guard: Within | None = None, bounded: bool = False) -> Reading:
    """Read the key of a policy that is nothing but a key.

    `guard` bounds the calls of it, as it does every turn; `bounded`: quotas bound what jobs may hold, which records do not know.
    """
    within = guard or plainly
    if not isinstance(policy, OrderPolicy):
        return Reading(why_asked="it makes plans, not an order")
    if not within(lambda: runs_by_key(policy)):
        return Reading(why_asked="it has a decide() of its own")
    why_tables = "quotas bound what jobs may hold" if bounded else why_not_on_records(state)
    depth = float(within(policy.backfill_depth))
    if depth:  # compiled on records only
        why_tables = why_tables or ("" if at_asked_speed(state) else "it backfills, and jobs run at other speeds than they asked for")
        if why_tables:
            return Reading(why_asked=why_tables)
    hint = Hint.NONE if depth else _hint_of(policy, within)
    if hint is Hint.OTHER:
        return Reading(why_asked="its valid_until() is neither None nor infinite nor a function of the snapshot")
    try:
        key, numbers = _declared(within(lambda: _note(policy, state)), state.tables)
    except CannotReadError as found:
        return Reading(why_asked=f"its key {found}")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a mistake is the policy's own, when it is asked
        return Reading(why_asked=f"its key raises {type(error).__name__}: {error}")
    if depth and key.moves:
        return Reading(why_asked="it backfills in an order that moves")
    if why := _why_asked(key, hint, state.regime.round <= 0.0):
        return Reading(why_asked=why)
    return Reading(replace(key, promises=depth), numbers, why_tables=why_tables, hint=hint)


def _why_asked(key: LinearKey, hint: Hint, on_events: bool) -> str:
    """Why only the policy knows when its order is to be looked at; empty: the key says it."""
    if on_events and hint is Hint.BY_SNAPSHOT and key.rises:
        return "its valid_until() names instants that the key does not show, and there are no rounds"
    if hint is Hint.FOR_EVER and (key.rises or key.thresholds):
        return "its valid_until() says that the order holds although it turns"
    if on_events and key.thresholds and hint is not Hint.BY_SNAPSHOT:
        # a level counts from the very instant only if the policy says when that is; else from the next look on
        return "it has levels and no valid_until(), and there are no rounds"
    return ""


def _note(policy: OrderPolicy, state: State) -> Form:
    """Call the key once with columns that take notes."""
    question: Any = _NotedSnapshot(state)
    with np.errstate(all="ignore"):
        found: Any = policy.key(question)
    if not isinstance(found, NotedColumn):
        _refuse("something else than columns of the snapshot")
    return found.form


def _declared(form: Form, tables: Tables) -> tuple[LinearKey, Floats | None]:
    """The same key as a sum, and the numbers that stand in place of the priorities, if it needs any."""
    rows = tables.F.shape[1]
    key = LinearKey()
    if form.limits:
        key = LinearKey(level_by=form.level_by, thresholds=form.limits, level_step=form.step)
    if form.flag or form.is_level or form.moving == "first_start":
        _no_sum()
    if form.by_start:
        arrival = tables.F[Job.ARRIVAL]
        never = float(np.round(form.fixed[0] - arrival[0])) if len(arrival) and np.ndim(form.fixed) else 0.0
        if not form.limits or not np.array_equal(never + arrival, form.fixed):
            _no_sum()
        return replace(key, first_start=1.0, never_started=never), None
    fixed = np.zeros(rows) if form.fixed is None else np.broadcast_to(np.asarray(form.fixed, dtype=np.float64), rows)
    if not (np.isfinite(fixed).all() and math.isfinite(form.by)):
        _no_sum()
    moving: dict[str, Any] = {form.moving: form.by} if form.moving else {}
    if form.column in _OF_SUMS and form.column not in moving:
        moving[form.column] = 1.0
        return replace(key, **moving), None
    needed = form.fixed is not None
    return replace(key, priority=float(needed), **moving), fixed if needed else None
