"""What changes cost and how late they may be: everything that a promise has to be planned for."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.snapshot import Snapshot
from gantline.models.model import Act, Gangs, overrides
from gantline.policies.elastic.pools import Pool
from gantline.systems.elasticflow.policies.settings import DeadlinePolicy


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
