"""`ffdl`: sizes and batch sizes with the greatest sum of speedups (Saxena et al., MASCOTS 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.models.model import overrides
from gantline.policies.elastic.layouts import LaysOut
from gantline.policies.elastic.policies import in_order, worth_it
from gantline.policies.elastic.pools import RATE_LIMIT, Curves, Pool, plan_of, share_again
from gantline.systems.ffdl.policies.optimizer import best_sum


@dataclass(frozen=True)
class Ffdl(LaysOut):
    """Jobs in order of arrival while their smallest sizes fit; then a dynamic program over GPUs, with the fastest batch at every size.

    A job's batch range is one in which it reaches its accuracy, so a larger batch is as good per sample. What a size is worth is its speed
    with the best batch that fits, relative to one GPU; the sum over all jobs is as large as it can be.
    """

    name: ClassVar[str] = "ffdl"
    paper: ClassVar[str] = "Saxena et al.: Effective Elastic Scaling of Deep Learning Workloads (MASCOTS 2020)"

    batch: str = field(
        default="adaptive",
        metadata=about("'adaptive': the fastest batch at every size; 'fixed': the job's own", one_of=("adaptive", "fixed")),
    )
    resize_cost: float = field(
        default=0.0, metadata=about("seconds that a change of size costs; growth that saves less is left out", low=0.0, unit="seconds")
    )
    rate_limit: float = field(default=0.0, metadata=about(RATE_LIMIT, low=0.0, unit="seconds"))

    def decide(self, snapshot: Snapshot) -> Plan:
        found = share_again(snapshot, snapshot.memory or {}, [], self._share, self.rate_limit)
        plan = plan_of(snapshot, found.shares, self.seats, valid_until=found.until, memory=found.memory)
        return plan if self.batch == "fixed" else _with_batches(snapshot, plan)

    def _share(self, pool: Pool) -> Ints:
        wide = pool if self.batch == "fixed" else Pool(pool.snapshot, pool.kind, pool.capacity, pool.jobs, adaptive_curves(pool))
        first, _ = in_order(np.arange(len(wide)), wide.curves.least, wide.capacity)
        return worth_it(wide, best_sum(wide.curves, np.flatnonzero(first), wide.capacity), self.resize_cost)


def adaptive_curves(pool: Pool) -> Curves:
    """The sizes of each job with its speed at the best batch there; sizes at which no batch fits are left out."""
    ids, min_gpus, max_gpus = pool.snapshot.jobs.ids, pool.snapshot.jobs.min_gpus.tolist(), pool.snapshot.jobs.max_gpus.tolist()
    choose = _batches_of(pool.snapshot)
    size: list[Ints] = []
    rate: list[Floats] = []
    option: list[Ints] = []
    for place, job in enumerate(pool.jobs.tolist()):
        own = slice(pool.curves.first[place], pool.curves.first[place + 1])
        least, most = max(min_gpus[job], 1), min(max_gpus[job], pool.capacity)
        found = None if choose is None else choose(ids[job], pool.kind, most)
        if found is None:
            size.append(pool.curves.size[own])
            rate.append(pool.curves.rate[own])
            option.append(pool.curves.option[own])
        else:
            fits = least + np.flatnonzero(found[0][least : most + 1])
            if len(pool.curves.size[own]) > 1 and (pool.curves.option[own] >= 0).all():
                fits = fits[np.isin(fits, pool.curves.size[own])]  # it lists the sizes that it can have
            size.append(fits)
            rate.append(found[1][fits])
            option.append(np.full(len(fits), -1))
    first = np.concatenate(([0], np.cumsum([len(part) for part in size]))).astype(np.int64)
    return Curves(first, np.concatenate(size), np.concatenate(rate), np.concatenate(option))


def _batches_of(snapshot: Snapshot) -> Callable[[str, int, int], tuple[Ints, Floats] | None] | None:
    """What knows the fastest batches; None: the run's model does not."""
    model = snapshot.performance
    return model.best_batches if overrides(model, "best_batches") else None


def _with_batches(snapshot: Snapshot, plan: Plan) -> Plan:
    """The same plan with the fastest batch for every size."""
    choose = _batches_of(snapshot)
    table = plan.assignments
    if choose is None or table is None:
        return plan
    batch, ids = np.zeros(len(table), dtype=np.int64), snapshot.jobs.ids
    gpus, kind = table.column("gpus"), table.column("type")
    for place, job in enumerate(table.job.tolist()):
        found = choose(ids[job], int(kind[place]), int(gpus[place])) if gpus[place] > 0 else None
        batch[place] = 0 if found is None else found[0][gpus[place]]
    columns: dict[str, Any] = {name: table.column(name) for name in ("option", "gpus", "type")}
    if table.has("devices"):
        columns["devices"] = table.entries("devices")
    return Plan.assign(Assignments(table.job, **columns, batch=batch), valid_until=plan.valid_until, memory=plan.memory)
