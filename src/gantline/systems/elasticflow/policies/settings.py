"""The parameters that ElasticFlow and its baseline share, and their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.elastic.layouts import LAYOUT, LAYOUTS

PAPER = "Gu et al.: ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning (ASPLOS 2023)"


@dataclass(frozen=True)
class DeadlinePolicy(Policy):
    """Parameters of a policy for deadlines."""

    paper: ClassVar[str] = PAPER
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    elastic: ClassVar[bool] = True

    compat: str = field(
        default="none",
        metadata=about("'elasticflow': every choice below as its artifact makes it; or 'none'", one_of=("none", "elasticflow")),
    )
    admission: str = field(
        default="auto",
        metadata=about(
            "'single' (newcomers one by one), 'group' (all that arrive at once, or none of them), 'off'",
            one_of=("auto", "single", "group", "off"),
        ),
    )
    spare_order: str = field(
        default="auto",
        metadata=about(
            "whose step is first: 'least_added' GPU-time per GPU, or 'artifact' (most: a slip of the sign)",
            one_of=("auto", "least_added", "artifact"),
        ),
    )
    judge: str = field(
        default="auto",
        metadata=about(
            "regime elasticflow: by the 'exact' planned end, or by the 'slot' that it is rounded up to", one_of=("auto", "exact", "slot")
        ),
    )
    scale_limit: str = field(
        default="auto",
        metadata=about("largest size: the 'knee' where a job is fastest, or all of its 'table'", one_of=("auto", "knee", "table")),
    )
    overhead: str = field(
        default="auto",
        metadata=about(
            "seconds a change of size costs; 'auto': as --costs, or as the artifact in its regime; 'none'",
            one_of=("auto", "artifact", "none"),
            low=0.0,
            unit="seconds",
        ),
    )
    layout: str = field(
        default="auto", metadata=about(LAYOUT + "; 'auto': buddies for elasticflow, engine for edf", one_of=("auto", *LAYOUTS))
    )

    @property
    def promises(self) -> bool:
        return self.settled().admission != "off"

    def seconds(self, snapshot: Snapshot) -> float:
        """The most that a change costs on the engine, before its size is counted: by the parameter, or else by the run."""
        if self.overhead == "auto":
            costs = snapshot.costs
            return max(costs.start, costs.resume, costs.resize, costs.move)
        return 0.0 if self.overhead in ("artifact", "none") else float(self.overhead)

    def settled(self) -> DeadlinePolicy:
        """The same with every 'auto' replaced by what it means."""
        artifact = self.compat == "elasticflow"
        admission = self.admission
        if admission == "auto":
            admission = ("group" if artifact else "single") if self.elastic else "off"
        elif admission == "group" and artifact and not self.elastic:
            admission = "single"  # the artifact's only kind of admission for it
        judge = self.judge if self.judge != "auto" else "slot" if artifact and admission == "off" else "exact"
        limit = self.scale_limit if self.scale_limit != "auto" else "table" if artifact and not self.elastic else "knee"
        spare = self.spare_order if self.spare_order != "auto" else "artifact" if artifact else "least_added"
        layout = self.layout if self.layout != "auto" else "buddies" if self.elastic and not artifact else "engine"
        return replace(self, admission=admission, judge=judge, scale_limit=limit, spare_order=spare, layout=layout)
