"""Questions to a policy that is a key: about all jobs or, where it says that it looks at each by itself, those that may have changed."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.policy import OrderPolicy
from gantline.drivers.python_keys.hint import Nothing, Within, time_said
from gantline.drivers.python_keys.tape import Column, Tape, write_columns
from gantline.drivers.python_keys.watched import Reads, WatchedJobs, WatchedSnapshot
from gantline.engine.state import State

_TRIED = 1023  # jobs, a sum of powers of two


class Questions:
    """One policy, what it has read so far, and until when its order holds.

    One that looks at each job by itself is first asked about all jobs of the run, before anything has happened: if it reads nothing that
    ever changes, that answer is for good (`lasting`). If it says something else of a job in other company, it is not `as_said`.
    """

    first_check: ClassVar[int] = 1  # the decision at which all are asked about for the first time, to see that it is as it says

    def __init__(self, policy: OrderPolicy, state: State, within: Within, *, by_job: bool = True) -> None:
        self._policy, self._state, self.within, self.by_job = policy, state, within, by_job
        self.reads = Reads(state)
        self.decision = 1
        self._jobs = WatchedJobs(state, self.reads)
        self._snapshot = WatchedSnapshot(state, self._jobs, self.reads, lambda: self.decision)
        self.constant, self._until = self._constant_until()
        self.ready: dict[Column, NDArray[Any]] = {}
        self.as_said = True
        self.lasting = self._lasting() if by_job else None
        self.reads.reasons = not by_job

    def _lasting(self) -> Floats | None:
        """The keys of all jobs of the run, if nothing that they are made of ever changes."""
        with np.errstate(all="ignore"):
            first = self.ask(np.arange(self._state.tables.F.shape[1], dtype=np.int64), 0.0)
        if first is None:
            return None
        self.as_said = self._alike(first)
        holds = self.constant and (self._until is None or self._until == math.inf)
        return first if self.as_said and not self.reads.moves and holds and not np.isnan(first).any() else None

    def _alike(self, keys: Floats) -> bool:
        """Whether it says the same of each of the first jobs in other company: in blocks of one, two, four and so on."""
        rows, size = np.arange(min(len(keys), _TRIED), dtype=np.int64), 1
        with np.errstate(all="ignore"):
            while len(rows):
                block, rows, size = rows[:size], rows[size:], 2 * size
                said = self.ask(block, 0.0)
                if said is None or not np.array_equal(said, keys[block], equal_nan=True):
                    return False
        return True

    def ask(self, rows: Ints, now: float) -> Floats | None:
        """The keys of these rows; None: the policy must be asked for all, be it to see what it did wrong."""
        self._jobs.show(rows, now, self.ready)
        try:
            said = np.asarray(self.within(self._key), dtype=np.float64)
        except KeyboardInterrupt:
            raise
        except BaseException:  # its mistake is told when it is asked about all
            return None
        return said if said.shape == rows.shape else None

    def _key(self) -> Any:
        return self._policy.key(self._snapshot)

    def _constant_until(self) -> tuple[bool, float | None]:
        """Whether the policy says without a look when its order might change, and when."""
        nothing: Any = Nothing()
        try:
            return True, time_said(self.within(lambda: self._policy.valid_until(nothing)))
        except KeyboardInterrupt:
            raise
        except BaseException:
            return False, None

    def valid_until(self) -> float | None:
        """When the order might change although nothing happens; NaN: it does not say; None: as in `ask`."""
        said = self._until
        if not self.constant:
            try:
                said = time_said(self.within(lambda: self._policy.valid_until(self._state.snapshot())))
            except KeyboardInterrupt:
                raise
            except BaseException:
                return None
        elif said is None and not self.reads.moves and self.by_job:
            said = math.inf
        return math.nan if said is None else said

    def tape(self, last: Tape | None) -> tuple[Tape, Floats]:
        """Instructions that gather what has been read so far, in place of the last ones, and the place of the answers."""
        tape, self.ready, said = write_columns(sorted(self.reads.columns, key=str), self._state.tables.F.shape[1])
        return (tape if last is None else tape._replace(stale=last.stale, counts=last.counts)), said
