"""`pollux`: every interval a population search for the allocation with the best power mean of speedups (Qiao et al., OSDI 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.drawn_places import moved, other_places
from gantline.policies.interference import INTERFERENCE
from gantline.systems.pollux.policies.by_options import decide

FITS = ("compiled", "artifact")


@dataclass(frozen=True)
class Pollux(Policy):
    """Speedups relative to a fair share, their power mean as large as possible; changes cost a restart, spanning jobs keep apart.

    In the regime `pollux`, and on the engine with profiles, speedups are believed: models fitted to the measurements of each job. Elsewhere
    they follow from the sizes that a job may have and their speeds.
    """

    believes: ClassVar[bool] = True
    usual_round: ClassVar[float] = 60.0  # seconds; on the engine it decides whenever it is asked
    name: ClassVar[str] = "pollux"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = (
        "Qiao, Choe, Subramanya, Neiswanger, Ho, Zhang, Ganger, Xing: Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized "
        "Deep Learning (OSDI 2021)"
    )

    p: float = field(
        default=-1.0,
        metadata=about("power of the mean of speedups: 1 their sum, below 0 the slow count more, 0 geometric", low=-20.0, high=20.0),
    )
    restart: float = field(default=30.0, metadata=about("seconds that a change is thought to cost", low=0.0, unit="seconds"))
    avoid: bool = field(default=True, metadata={"help": "whether jobs that span nodes never share one"})
    size: int = field(default=100, metadata=about("members of the population", low=2))
    generations: int = field(default=100, metadata=about("generations of a search", low=1))
    work: int = field(
        default=0, metadata=about("rows (members x generations x jobs) of a search at most, so that it is bounded; 0: no bound", low=0)
    )
    fit: str = field(
        default="compiled", metadata=about("regime pollux: how models are fitted, 'compiled' or 'artifact' (L-BFGS-B)", one_of=FITS)
    )
    interference: float = field(default=0.0, metadata=about(INTERFERENCE, low=0.0, below=1.0, unit="a part"))

    def unread(self, regime: str) -> tuple[str, ...]:
        """Pollux' simulator alone knows what interference is."""
        return () if regime == "pollux" else ("interference",)

    def decide(self, snapshot: Snapshot) -> Plan:
        return decide(snapshot, self.p, self.restart, self.avoid, self.size, self.affordable)

    def alternatives(self, snapshot: Snapshot, plan: Plan, count: int) -> list[Plan]:
        """The gangs that this plan starts or moves, on other devices: a search prices nodes and restarts, not which nodes they are."""
        grants = plan.assignments
        assert grants is not None
        held = [set(snapshot.jobs.devices(job)) for job in grants.job.tolist()]
        changed = [job for job, now, devices in zip(grants.job.tolist(), held, grants.entries("devices")) if now != {*devices}]
        return [moved(plan, places) for places in other_places(snapshot, plan, changed, count)]

    def affordable(self, jobs: int) -> int:
        """Generations of a search for so many jobs."""
        return self.generations if self.work == 0 else min(self.generations, max(self.work // (self.size * max(jobs, 1)), 1))
