"""What a policy sees: one instant of the cluster, as columns.

`snapshot.jobs` lists the active jobs (admitted, not ended) in order of arrival; every column is a read-only array over them.
Arrays are borrowed: they are valid during `decide` and must be copied to be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster_now import ClusterNow
from gantline.core.gather import gather_float, gather_int, moving
from gantline.core.grant import Grant
from gantline.core.options import Option
from gantline.core.phases import CHECKPOINTING, RUNNING, STARTING
from gantline.core.plan import Reservation
from gantline.core.rng import stream
from gantline.core.tables import Tables


class Jobs:
    """Columns over the active jobs at one instant."""

    __slots__ = ("_cache", "_now", "_tables", "rows")

    def __init__(self, tables: Tables, rows: Ints, now: float) -> None:
        self.rows = rows
        self._tables = tables
        self._now = now
        self._cache: dict[Any, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def _float(self, column: int) -> Floats:
        found = self._cache.get(column)
        if found is None:
            found = self._cache[column] = gather_float(self._tables.F, column, self.rows)
            found.flags.writeable = False
        return found

    def _int(self, column: int) -> Ints:
        found = self._cache.get(~column)
        if found is None:
            found = self._cache[~column] = gather_int(self._tables.I, column, self.rows)
            found.flags.writeable = False
        return found

    def _moving(self, which: int) -> Floats:
        key = ("m", which)
        found = self._cache.get(key)
        if found is None:
            found = self._cache[key] = moving(self._tables.F, self._tables.I, self.rows, self._now, which)
            found.flags.writeable = False
        return found

    # --- what was asked for -----------------------------------------------------------------------------------------
    @property
    def ids(self) -> list[str]:
        names = self._tables.ids
        return [names[row] for row in self.rows]

    @property
    def arrival(self) -> Floats:
        return self._float(c.ARRIVAL)

    @property
    def gpus(self) -> Ints:
        return self._int(c.GPUS)

    @property
    def min_gpus(self) -> Ints:
        return self._int(c.MIN_GPUS)

    @property
    def max_gpus(self) -> Ints:
        return self._int(c.MAX_GPUS)

    @property
    def priority(self) -> Floats:
        return self._float(c.PRIORITY)

    @property
    def weight(self) -> Floats:
        return self._float(c.WEIGHT)

    @property
    def deadline(self) -> Floats:
        return self._float(c.DEADLINE)

    @property
    def user(self) -> Ints:
        """Code of the user; `snapshot.users` has the names."""
        return self._int(c.USER)

    @property
    def queue(self) -> Ints:
        return self._int(c.QUEUE)

    @property
    def app(self) -> Ints:
        return self._int(c.APP)

    @property
    def model(self) -> Ints:
        return self._int(c.MODEL)

    @property
    def listed(self) -> Ints:
        """Where each job stood in the list that the snapshot was read from, for policies that imitate ties by input order."""
        found = self._tables.listed
        return self.rows if found is None else found[self.rows]

    # --- what has happened ------------------------------------------------------------------------------------------
    @property
    def attained(self) -> Floats:
        """Seconds run so far."""
        return self._moving(c.SERVICE)

    @property
    def attained_gpu(self) -> Floats:
        """GPU-seconds run so far."""
        return self._moving(c.GPUTIME)

    @property
    def done(self) -> Floats:
        """Work done so far."""
        return self._moving(c.DONE)

    @property
    def waiting(self) -> Floats:
        """Seconds since a job that does not run began to wait; zero for those that run."""
        key = "waiting"
        found = self._cache.get(key)
        if found is None:
            since = self._float(c.SINCE)
            found = self._cache[key] = np.where(self.running, 0.0, np.maximum(self._now - since, 0.0))
        return found

    @property
    def first_start(self) -> Floats:
        """First time it was given devices; NaN: never."""
        return self._float(c.FIRST_START)

    @property
    def last_start(self) -> Floats:
        return self._float(c.LAST_START)

    @property
    def restarts(self) -> Ints:
        return self._int(c.RESTARTS)

    @property
    def preemptions(self) -> Ints:
        return self._int(c.PREEMPTIONS)

    # --- what is estimated ------------------------------------------------------------------------------------------
    @property
    def estimate(self) -> Floats:
        """Estimated total work."""
        return self._float(c.ESTIMATE)

    @property
    def remaining(self) -> Floats:
        """Estimated remaining work: seconds at the speed of the request. Never below zero."""
        return np.maximum(self._moving(c.ESTIMATE), 0.0)

    # --- where it stands --------------------------------------------------------------------------------------------
    @property
    def phase(self) -> Ints:
        return self._int(c.PHASE)

    @property
    def running(self) -> Bools:
        """Whether it holds devices (starting counts)."""
        key = "running"
        found = self._cache.get(key)
        if found is None:
            phase = self._int(c.PHASE)
            found = self._cache[key] = (phase >= STARTING) & (phase <= CHECKPOINTING + 2)
        return found

    @property
    def progressing(self) -> Bools:
        return np.asarray((self.phase == RUNNING) & (self._float(c.SINCE) <= self._now))

    @property
    def held(self) -> Ints:
        """Devices held now."""
        return self._int(c.HELD)

    @property
    def rate(self) -> Floats:
        """Work per second now; zero for those that do not run."""
        return np.where(self.running, self._float(c.RATE), 0.0)

    @property
    def locked(self) -> Bools:
        return np.asarray(self._int(c.LOCKED) != 0)

    @property
    def until(self) -> Floats:
        """End of the present lease."""
        return self._float(c.UNTIL)

    @property
    def option(self) -> Ints:
        """Which of its options is in use (-1: none)."""
        current = self._int(c.OPTION)
        return np.where(current < 0, -1, current - self._int(c.OPTION_FIRST))

    @property
    def option_first(self) -> Ints:
        """First row of each job's options in `snapshot.options`."""
        return self._int(c.OPTION_FIRST)

    @property
    def option_count(self) -> Ints:
        return self._int(c.OPTION_COUNT)

    def options(self, position: int) -> list[Option]:
        """The ways in which one job may run."""
        row = int(self.rows[position])
        first, count = int(self._tables.I[c.OPTION_FIRST, row]), int(self._tables.I[c.OPTION_COUNT, row])
        return [self._tables.options[k] for k in range(first, first + count)]

    def devices(self, position: int) -> tuple[int, ...]:
        """The devices one job holds, its own or shared, in rank order."""
        grant = self.grant(position)
        if grant is not None and grant.shared:
            return grant.devices
        device = int(self._tables.I[c.HEAD, int(self.rows[position])])
        held: list[int] = []
        while device >= 0:
            held.append(device)
            device = int(self._tables.D[c.D_NEXT, device])
        return tuple(held)

    def grant(self, position: int) -> Grant | None:
        """What one job holds beyond a gang of its own (group, fraction, offset, parts, shares of time, batch); None: nothing of that."""
        return self._tables.granted.get(int(self.rows[position]))

    def metric(self, name: str) -> Floats:
        """A measured value per job; NaN where unknown."""
        column = self._tables.metrics.get(name)
        if column is None:
            return np.full(len(self.rows), np.nan)
        return column[self.rows]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One instant, lent to a policy. Equal (snapshot, memory, seed) give equal plans."""

    now: float
    decision: int
    seed: int
    jobs: Jobs
    cluster: ClusterNow
    memory: Any = None
    round: float = 0.0  # length of a round; zero when decisions follow events
    reservations: tuple[Reservation, ...] = ()
    regime: str = "default"  # the way of counting time, for policies that imitate an artifact in its own regime
    tables: Tables = field(repr=False, default=None)  # type: ignore[assignment]

    def rng(self, name: str) -> np.random.Generator:
        """A stream of random numbers of its own, keyed by (seed, decision, name)."""
        return stream(self.seed, self.decision, name)

    @property
    def users(self) -> list[str]:
        return self.tables.users

    @property
    def queues(self) -> list[str]:
        return self.tables.queues

    @property
    def apps(self) -> list[str]:
        return self.tables.apps

    @property
    def models(self) -> list[str]:
        return self.tables.models

    @property
    def options(self) -> Any:
        """The option table of all jobs; see `jobs.option_first` and `jobs.option_count`."""
        return self.tables.options

    @property
    def performance(self) -> Any:
        """Speeds of pairs, scaling curves and the like, where the run has a model."""
        return self.tables.performance
