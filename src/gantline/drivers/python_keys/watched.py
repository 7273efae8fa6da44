"""Some of the jobs at one instant, handed to a key that looks at each job by itself; what it reads of them is noted.

What was read says how long an answer holds. Of what was asked for nothing ever changes; whatever else a job has changes, while it waits,
only if something happens to it; the clock and all that lies outside of the job may change at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.cluster_now import ClusterNow
from gantline.core.jobs_now import Jobs
from gantline.core.lending import Lent, sealed
from gantline.core.snapshot import Snapshot
from gantline.drivers.python_keys.expression import CannotReadError
from gantline.drivers.python_keys.notes import FIXED_FLOATS, FIXED_INTS
from gantline.drivers.python_keys.tape import Column
from gantline.engine.state import State

#: columns that are made of others, and that compiled code makes as well; of these the last two change with the clock
MADE = frozenset({"remaining", "running", "rate", "waiting", "progressing"})
_AGE = frozenset({"waiting", "progressing"})
_FIXED = frozenset({*FIXED_FLOATS.values(), *(~column for column in FIXED_INTS.values())})
#: what is lent and never changes while nothing comes from outside
_LASTING = frozenset({"ids", "names", "queue_tree", "options", "listed", "cluster"})


class Reads:
    """What a key has read so far."""

    def __init__(self, state: State) -> None:
        F = state.tables.F
        known = bool((F[c.ESTIMATE] >= F[c.WORK]).all())  # else estimates are raised when they prove too low
        self.fixed = _FIXED | {c.ESTIMATE} if known else _FIXED
        self.columns: set[Column] = set()
        self.moves = False  # something that is not fixed
        self.ages = False  # something that may change for a job that waits, although nothing happens to it
        self.strict = False  # nothing may be read that changes and has not been read before
        self.reasons = False  # the reasons why jobs wait, which depend on how others fared, may be read

    def note(self, column: Column) -> None:
        """One more column."""
        if column == ~c.REASON:  # is not gathered beforehand, because some are entered afterwards
            if not self.reasons:
                raise CannotReadError("the reasons why jobs wait")
            self.more()
            return
        self.columns.add(column)
        self.moves = self.moves or column not in self.fixed
        self.ages = self.ages or column in _AGE
        if self.strict and column not in self.fixed:
            raise CannotReadError("something that it has not read before")

    def more(self) -> None:
        """Something else than a job."""
        self.moves = self.ages = True
        if self.strict:
            raise CannotReadError("more than jobs")


class WatchedJobs(Jobs):
    """Some jobs, in any order; `ready` has columns that compiled code has gathered for them already."""

    __slots__ = ("_at", "_lender", "_loan", "_reads", "_ready", "_state")

    def __init__(self, state: State, reads: Reads) -> None:
        lent = state.tables.lent
        self._state, self._lender, self._loan, self._reads = state, lent, _watched_loan(lent, reads), reads
        self._cache = {}

    def show(self, rows: Ints, now: float, ready: dict[Column, NDArray[Any]]) -> None:
        """Stand for these rows at this instant."""
        self._rows = rows
        self._at, self._ready, self._held = now, ready, None
        self._cache.clear()

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> Ints:  # type: ignore[override]
        return self._made("rows", self._rows.copy)  # the loop goes on with its own, whatever becomes of these

    @property
    def _now(self) -> float:  # type: ignore[override]
        self._reads.more()
        return self._at

    @property
    def _learned(self) -> Any:
        self._reads.more()
        return self._state.learned

    @property
    def _lent(self) -> Lent:  # type: ignore[override]
        return self._loan

    def _float(self, column: int) -> Floats:
        found = self._cache.get(column)
        return self._fetch(column, lambda: self._lender.floats(column, self._rows)) if found is None else found

    def _int(self, column: int) -> Ints:
        found = self._cache.get(~column)
        return self._fetch(~column, lambda: self._lender.ints(column, self._rows)) if found is None else found

    def _moving(self, which: int) -> Floats:
        found = self._cache.get(("m", which))
        return self._fetch(("m", which), lambda: self._lender.moving(which, self._rows, self._at)) if found is None else found

    def _made(self, name: Any, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        found = self._cache.get(name)
        if found is None and name in MADE:
            return self._fetch(name, lambda: np.asarray(getattr(Jobs(self._lender, self._rows, self._at), name)))
        if found is None:
            found = self._cache[name] = sealed(make())
        return found

    def _fetch(self, column: Column, gather: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """A column that is ready, or gathered now."""
        if column not in self._reads.columns:
            self._reads.note(column)
        ready = self._ready.get(column)
        found = self._cache[column] = sealed(gather()) if ready is None else ready[: len(self._rows)]
        return found


class WatchedSnapshot(Snapshot):
    """A snapshot of such jobs."""

    __slots__ = ("_decision", "_learned", "_reads")
    _decision: Callable[[], int]
    _learned: Any
    _reads: Reads

    def __init__(self, state: State, jobs: WatchedJobs, reads: Reads, decision: Callable[[], int]) -> None:
        put: Any = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        put("_reads", reads)
        put("_decision", decision)
        put("_learned", state.learned)
        put("jobs", jobs)
        put("seed", state.seed)
        put("cluster", ClusterNow(jobs._lent))
        put("memory", state.memory)
        put("round", state.regime.round)
        put("regime", state.regime.name)
        put("reservations", ())
        put("facts", state.facts)
        put("lent", jobs._lent)

    @property
    def now(self) -> float:
        return self.jobs._now

    @property
    def decision(self) -> int:
        self._reads.more()
        return self._decision()

    @property
    def learned(self) -> Any:
        self._reads.more()
        return self._learned


def _watched_loan(lent: Lent, reads: Reads) -> Lent:
    """What is lent, where reading anything that may change is noted."""

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            reads.more()
            return function(*given)

        return call

    return lent._replace(**{name: watched(getattr(lent, name)) for name in lent._fields if name not in _LASTING})
