"""`sia`: each round a configuration of GPU type, nodes and GPUs for every job, by an integer program over goodputs (SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.elastic.layouts import LAYOUT, LAYOUTS, MOVE_COST
from gantline.systems.sia.policies.by_options import decide

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

    p: float = field(
        default=-0.5,
        metadata=about("power of goodputs in the objective: below 0 small jobs count more; 0: logarithms", low=-10.0, high=10.0),
    )
    lambda_n: float = field(default=1.1, metadata=about("cost of leaving a job idle, above 1 (its least configuration costs 1)", above=1.0))
    restart: float = field(
        default=30.0, metadata=about("seconds a restart is thought to cost, where the model's own are not known", low=0.0, unit="seconds")
    )
    projection: bool = field(default=True, metadata={"help": "whether types that a job has not run on are projected from others"})
    share_limit: bool = field(default=True, metadata={"help": "whether the most replicas are those of the type on which it ran widest"})
    batch_cap: bool = field(default=True, metadata={"help": "whether adaptive jobs are thought to stay below the batch asked for"})
    fit: str = field(
        default="artifact", metadata=about("how models are fitted: 'artifact' stops where the artifact does, 'compiled'", one_of=FITS)
    )
    placement: str = field(
        default="sticky", metadata=about("'sticky' moves as few as it can, 'fast' places all jobs anew each round", one_of=PLACEMENTS)
    )
    layout: str = field(default="engine", metadata=about(LAYOUT + " (regimes of the engine; not 'sia')", one_of=LAYOUTS))
    move_cost: str = field(default="auto", metadata=about(MOVE_COST, one_of=("auto",), low=0.0, finite=True, unit="seconds"))
    reserved: str = field(
        default="", metadata={"help": "jobs that have their only configuration whatever it costs, joined by |; empty: as the trace says"}
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        names = frozenset(self.reserved.split("|")) - {""}
        reserved = np.isin(snapshot.jobs.ids, list(names)) if names else snapshot.jobs.reserved > 0
        return decide(snapshot, self.p, self.lambda_n, self.restart, self.layout, self.move_cost, reserved)
