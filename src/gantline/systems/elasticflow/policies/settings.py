"""The parameters that ElasticFlow and its baseline share, and what changes of size cost under them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.model import Act, Gangs, overrides
from gantline.policies.elastic.layouts import LAYOUT, LAYOUTS
from gantline.policies.elastic.pools import Pool

PAPER = "Gu et al.: ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning (ASPLOS 2023)"


@dataclass(frozen=True)
class DeadlinePolicy(Policy):
    """Parameters of a policy for deadlines."""

    paper = PAPER
    needs = frozenset({"remaining"})
    elastic: ClassVar[bool] = True

    compat: str = parameter("none", "'elasticflow': every choice below as its artifact makes it; or 'none'", one_of=("none", "elasticflow"))
    admission: str = parameter(
        "auto",
        "'single' (newcomers one by one), 'group' (all that arrive at once, or none of them), 'off'",
        one_of=("auto", "single", "group", "off"),
    )
    spare_order: str = parameter(
        "auto",
        "whose step is first: 'least_added' GPU-time per GPU, or 'artifact' (most: a slip of the sign)",
        one_of=("auto", "least_added", "artifact"),
    )
    judge: str = parameter(
        "auto",
        "regime elasticflow: by the 'exact' planned end, or by the 'slot' that it is rounded up to",
        one_of=("auto", "exact", "slot"),
    )
    scale_limit: str = parameter(
        "auto", "largest size: the 'knee' where a job is fastest, or all of its 'table'", one_of=("auto", "knee", "table")
    )
    overhead: str = parameter(
        "auto",
        "seconds a change of size costs; 'auto': as --costs, or as the artifact in its regime; 'none'",
        one_of=("auto", "artifact", "none"),
        low=0.0,
        unit="seconds",
    )
    layout: str = parameter("auto", LAYOUT + "; 'auto': buddies for elasticflow, engine for edf", one_of=("auto", *LAYOUTS))

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


# What changes cost and how late they may be: everything that a promise has to be planned for.


def charges(rules: DeadlinePolicy, pool: Pool) -> tuple[Floats, Floats, Floats]:
    """Seconds that a first start, a start after a stop and another size cost, per size of each job's curve."""
    size, snapshot = pool.curves.size, pool.snapshot
    if rules.overhead != "auto":
        flat = np.full(len(size), rules.seconds(snapshot))
        return flat, flat, flat
    costs = snapshot.costs
    doublings = costs.doubling * np.log2(np.maximum(size, 1))
    found = [np.where(cost > 0.0, cost + doublings, 0.0) for cost in (costs.start, costs.resume, max(costs.resize, costs.move))]
    if overrides(snapshot.performance, "cost"):
        found = [_as_modelled(pool, acts, cost) for acts, cost in zip(_ACTS, found)]
    return found[0], found[1], found[2]


_ACTS = ((Act.START,), (Act.RESUME,), (Act.RESIZE, Act.MOVE))


def _as_modelled(pool: Pool, acts: tuple[Act, ...], listed: Floats) -> Floats:
    """The same by the performance model, where it has costs."""
    costs = [pool.snapshot.performance.cost(_gangs(pool, act)) for act in acts]
    known = [np.where(np.isnan(one), listed, one) for one in costs if one is not None]
    return np.maximum.reduce(known) if known else listed


def _gangs(pool: Pool, act: Act) -> Gangs:
    """Every size of every job of the pool, as a gang that would do this."""
    snapshot, curves = pool.snapshot, pool.curves
    jobs, ids = snapshot.jobs, snapshot.jobs.ids
    owner: Ints = pool.jobs[np.repeat(np.arange(len(pool)), np.diff(curves.first))]
    most = int(snapshot.cluster.node_gpus[snapshot.cluster.node_type == pool.kind].max(initial=1))
    names = {int(jobs.rows[k]): (ids[k], snapshot.models[int(jobs.model[k])]) for k in pool.jobs.tolist()}
    n = len(curves.size)
    held = (np.full(n, pool.kind), curves.size, -(-curves.size // most))
    moves = (jobs.done[owner], np.full(n, snapshot.now), curves.rate, curves.rate)
    now = (snapshot.now, snapshot.learned, snapshot.cluster.description)
    return Gangs(*now, jobs.rows[owner], *held, *moves, (None,) * n, act=np.full(n, int(act)), _name=names.__getitem__)


def delays(snapshot: Snapshot) -> tuple[float, float]:
    """Seconds until a change is carried out that is decided now, and at most for one that is due later.

    The decision that a later change needs may find another one under way, and begin when that is carried out; in rounds as long as a
    decision takes, or longer, it does not.
    """
    taken, grid = snapshot.latency, snapshot.round
    return taken, taken if grid >= taken else 2.0 * taken + grid
