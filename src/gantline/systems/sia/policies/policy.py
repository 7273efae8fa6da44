"""`sia`: each round a configuration of GPU type, nodes and GPUs for every job, by an integer program over goodputs (SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core.errors import UsageError, near
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.layouts import LAYOUT, MOVE_COST, check_layout
from gantline.systems.sia.policies.by_options import decide
from gantline.systems.sia.policies.matrix import check_power

FITS = ("artifact", "compiled")
PLACEMENTS = ("sticky", "fast")


@dataclass(frozen=True)
class Sia(Policy):
    """Goodput per configuration to the power p, at least cost within the GPUs of each type; restarts are discounted.

    In the regime `sia`, and on the engine with profiles, goodputs are believed: models fitted to what each job has shown. Elsewhere the
    options of a job are its configurations, and their listed speeds its goodputs.
    """

    believes: ClassVar[bool] = True
    keeps_reservations: ClassVar[bool] = True
    node_sizes: ClassVar[bool] = True
    usual_round: ClassVar[float] = 60.0  # seconds; on the engine it decides whenever it is asked
    name: ClassVar[str] = "sia"
    paper: ClassVar[str] = (
        "Jayaram Subramanya, Arfeen, Lin, Qiao, Jia, Ganger: Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling (SOSP 2023)"
    )

    p: float = field(default=-0.5, metadata={"help": "power of goodputs in the objective: below 0 small jobs count more; 0: logarithms"})
    lambda_n: float = field(default=1.1, metadata={"help": "cost of leaving a job idle, above 1 (its least configuration costs 1)"})
    restart: float = field(default=30.0, metadata={"help": "seconds a restart is thought to cost, where the model's own are not known"})
    projection: bool = field(default=True, metadata={"help": "whether types that a job has not run on are projected from others"})
    share_limit: bool = field(default=True, metadata={"help": "whether the most replicas are those of the type on which it ran widest"})
    batch_cap: bool = field(default=True, metadata={"help": "whether adaptive jobs are thought to stay below the batch asked for"})
    fit: str = field(default="artifact", metadata={"help": "how models are fitted: 'artifact' stops where the artifact does, 'compiled'"})
    placement: str = field(default="sticky", metadata={"help": "'sticky' moves as few as it can, 'fast' places everyone anew each round"})
    layout: str = field(default="engine", metadata={"help": LAYOUT + " (regimes of the engine; not 'sia')"})
    move_cost: str = field(default="auto", metadata={"help": MOVE_COST})
    reserved: str = field(
        default="", metadata={"help": "jobs that have their only configuration whatever it costs, joined by |; empty: as the trace says"}
    )

    def __post_init__(self) -> None:
        check_power(self.p, self.lambda_n)
        check_layout(self.layout, self.move_cost, self.name)
        if not self.restart >= 0:
            raise UsageError(f"parameter 'restart' is {self.restart}", where="policy 'sia'", fix="give seconds, 0 or more")
        for name, value, known in (("fit", self.fit, FITS), ("placement", self.placement, PLACEMENTS)):
            if value not in known:
                raise UsageError(f"parameter '{name}' is '{value}'", where="policy 'sia'", fix=near(value, known))

    def decide(self, snapshot: Snapshot) -> Plan:
        names = frozenset(self.reserved.split("|")) - {""}
        reserved = np.isin(snapshot.jobs.ids, list(names)) if names else snapshot.jobs.reserved > 0
        return decide(snapshot, self.p, self.lambda_n, self.restart, self.layout, self.move_cost, reserved)
