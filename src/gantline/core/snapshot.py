"""What a policy sees: one instant of the cluster, as columns.

`snapshot.jobs` lists the active jobs (admitted, not ended) in order of arrival; every column is a read-only array over them. Nothing
here leads to the engine's own tables: what is handed out are copies that cannot be written to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gantline.core.cluster_now import ClusterNow
from gantline.core.departures import NOBODY, Left
from gantline.core.facts import NO_FACTS, Costs, Facts
from gantline.core.jobs_now import Jobs
from gantline.core.options import OptionTable
from gantline.core.plan import Reservation
from gantline.core.queues import Queue
from gantline.core.rng import stream
from gantline.core.snapshot_view import Lent

if TYPE_CHECKING:
    from gantline.core.windows import AdvanceWindow

__all__ = ["Jobs", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One instant, lent to a policy. Equal (snapshot, memory, seed) give equal plans.

    =================  ===============================================================================================
    ``now``            seconds since the beginning of the run
    ``decision``       the number of this question, counted from one
    ``seed``           of the run; see `rng`
    ``jobs``           columns over the active jobs in order of arrival (`Jobs`); plans name jobs by position in it
    ``cluster``        nodes, devices, what is free (`ClusterNow`)
    ``memory``         the plain value that the policy's last plan carried; None at first
    ``round``          length of a round in seconds; zero when decisions follow events
    ``reservations``   what earlier plans promised and still stands
    ``regime``         the way of counting time, for policies that imitate an artifact in its own regime
    ``learned``        what the performance model has learned so far, a plain value; None: nothing
    ``facts``          what holds throughout the run (`Facts`): ``costs``, ``prices``, ``min_run`` and ``latency``
    ``left``           the jobs that have left since the last question, with what they used until then (`Left`)
    =================  ===============================================================================================
    """

    now: float
    decision: int
    seed: int
    jobs: Jobs
    cluster: ClusterNow
    memory: Any = None
    round: float = 0.0
    reservations: tuple[Reservation, ...] = ()
    regime: str = "default"
    learned: Any = None
    facts: Facts = NO_FACTS
    lent: Lent = field(repr=False, compare=False, default=None)  # type: ignore[assignment]
    find_left: Callable[[], Left] = field(repr=False, compare=False, default=lambda: NOBODY)

    def rng(self, name: str) -> np.random.Generator:
        """A stream of random numbers of its own, keyed by (seed, decision, name)."""
        return stream(self.seed, self.decision, name)

    @property
    def costs(self) -> Costs:
        """Seconds that starts, stops, moves and changes of size cost."""
        return self.facts.costs

    @property
    def prices(self) -> Mapping[str, float]:
        """Money per device-hour, by device type; empty: nothing is said about money."""
        return self.facts.prices

    @property
    def min_run(self) -> float:
        """Seconds that a gang runs before it may be stopped."""
        return self.facts.min_run

    @property
    def latency(self) -> float:
        """Seconds from this snapshot to the commit of its plan."""
        return self.facts.latency

    @property
    def left(self) -> Left:
        """The jobs that were there at the last question and are not any more; like the columns of `jobs`, valid during `decide`."""
        return self.find_left()

    @property
    def users(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.user`."""
        return self.lent.names("users")

    @property
    def queues(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.queue`."""
        return self.lent.names("queues")

    @property
    def queue_tree(self) -> Mapping[str, Queue]:
        """The queues that the run declares: weight, quota, parent."""
        return self.lent.queue_tree()

    @property
    def windows(self) -> tuple[AdvanceWindow, ...]:
        """Devices that are reserved in advance; the engine keeps plans off them."""
        return self.lent.windows()

    @property
    def apps(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.app`."""
        return self.lent.names("apps")

    @property
    def models(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.model`."""
        return self.lent.names("models")

    @property
    def options(self) -> OptionTable:
        """The options of all jobs, read-only; see `jobs.option_first` and `jobs.option_count`."""
        return self.lent.options()

    @property
    def performance(self) -> Any:
        """The performance model of the run, None where it has none: how fast jobs are in other ways, see `gantline.models.model`."""
        return self.lent.performance()
