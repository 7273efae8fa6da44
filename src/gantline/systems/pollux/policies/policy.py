"""`pollux`: every interval a population search for the allocation with the best power mean of speedups (Qiao et al., OSDI 2021)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gantline.core.errors import UsageError, near
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.interference import INTERFERENCE, check_interference
from gantline.systems.pollux.policies.by_options import decide

FITS = ("compiled", "artifact")


@dataclass(frozen=True)
class Pollux(Policy):
    """Speedups relative to a fair share, their power mean as large as possible; changes cost a restart, spanning jobs keep apart.

    In the regime `pollux`, and on the engine with profiles, speedups are believed: models fitted to what each job has shown. Elsewhere they
    follow from the sizes that a job may have and their speeds.
    """

    believes: ClassVar[bool] = True
    usual_round: ClassVar[float] = 60.0  # seconds; on the engine it decides whenever it is asked
    name: ClassVar[str] = "pollux"
    paper: ClassVar[str] = (
        "Qiao, Choe, Subramanya, Neiswanger, Ho, Zhang, Ganger, Xing: Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized "
        "Deep Learning (OSDI 2021)"
    )

    p: float = field(
        default=-1.0, metadata={"help": "power of the mean of speedups: 1 their sum, below 0 the slow count more, 0 geometric"}
    )
    restart: float = field(default=30.0, metadata={"help": "seconds that a change is thought to cost"})
    avoid: bool = field(default=True, metadata={"help": "whether jobs that span nodes never share one"})
    size: int = field(default=100, metadata={"help": "members of the population"})
    generations: int = field(default=100, metadata={"help": "generations of a search"})
    fit: str = field(default="compiled", metadata={"help": "regime pollux: how models are fitted, 'compiled' or 'artifact' (L-BFGS-B)"})
    interference: float = field(default=0.0, metadata={"help": INTERFERENCE})

    def __post_init__(self) -> None:
        where = f"policy '{self.name}'"
        if not abs(self.p) <= 20.0:
            raise UsageError(f"parameter 'p' is {self.p}", where=where, fix="use a power between -20 and 20, such as -1")
        if not self.restart >= 0.0:
            raise UsageError(f"parameter 'restart' is {self.restart}", where=where, fix="give seconds, 0 or more")
        if self.size < 2 or self.generations < 1:
            raise UsageError(
                f"a population of {self.size} for {self.generations} generations", where=where, fix="use size=100 generations=100"
            )
        if self.fit not in FITS:
            raise UsageError(f"parameter 'fit' is '{self.fit}'", where=where, fix=near(self.fit, FITS))
        check_interference(self)

    def decide(self, snapshot: Snapshot) -> Plan:
        return decide(snapshot, self.p, self.restart, self.avoid, self.size, self.generations)
