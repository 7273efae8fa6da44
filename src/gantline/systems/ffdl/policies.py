"""`ffdl`: sizes and batch sizes with the greatest sum of speedups (Saxena et al., MASCOTS 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import compiled
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import parameter
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides
from gantline.policies.elastic.layouts import LaysOut
from gantline.policies.elastic.policies import in_order, worth_it
from gantline.policies.elastic.pools import RATE_LIMIT, Curves, Pool, plan_of, share_again

# FfDL's optimizer (Saxena et al., MASCOTS 2020): the sizes of all kept jobs with the greatest sum of speedups.
#
# A dynamic program over jobs and devices. Where every curve bends down (each further device adds no more than the one before), taking
# the best step again and again is the same and much quicker.


def best_sum(curves: Curves, kept: Ints, capacity: int) -> Ints:
    """Sizes of the kept jobs (whose minima fit together) that maximise the sum of speedups; the others get nothing.

    Ties: of equal sums, jobs further back in `kept` get less.
    """
    grants = np.zeros(len(curves), dtype=np.int64)
    if not len(kept) or capacity <= 0:
        return grants
    if _all_concave(curves, kept):
        return _by_steps(curves, kept, capacity, grants)
    choice = np.zeros((len(kept), capacity + 1), dtype=np.int16)
    fill_choices(curves.first, curves.size, curves.speedup, kept, capacity, choice)
    left = capacity
    for j in range(len(kept) - 1, -1, -1):
        entry = curves.first[kept[j]] + int(choice[j, left])
        grants[kept[j]] = curves.size[entry]
        left -= int(curves.size[entry])
    return grants


def _all_concave(curves: Curves, kept: Ints) -> bool:
    """Whether steps are single devices and gains never rise; gaps and rising gains need the dynamic program."""
    inside = np.zeros(len(curves.size), dtype=bool)
    for job in kept.tolist():
        inside[curves.first[job] + 1 : curves.first[job + 1]] = True
    step, gain = np.diff(curves.size, prepend=0), np.diff(curves.speedup, prepend=0.0)
    second = inside.copy()
    starts = curves.first[:-1][curves.first[:-1] < len(inside)]
    after = starts + 1
    second[after[after < len(inside)]] = False
    rising = np.diff(gain, prepend=0.0) > 1e-12
    return bool((step[inside] == 1).all() and not rising[second].any())


def _by_steps(curves: Curves, kept: Ints, capacity: int, grants: Ints) -> Ints:
    size, speedup, ends = curves.size.tolist(), curves.speedup.tolist(), curves.first[1:].tolist()
    entry = {job: int(curves.first[job]) for job in kept.tolist()}
    free = capacity - sum(size[at] for at in entry.values())
    heap = [
        (speedup[at] - speedup[at + 1], place, job)
        for place, (job, at) in enumerate(entry.items())
        if at + 1 < ends[job] and speedup[at + 1] > speedup[at]
    ]
    heapify(heap)
    while free > 0 and heap:
        _, place, job = heappop(heap)
        entry[job] += 1
        free -= 1
        at = entry[job]
        if at + 1 < ends[job] and speedup[at + 1] > speedup[at]:
            heappush(heap, (speedup[at] - speedup[at + 1], place, job))
    for job, at in entry.items():
        grants[job] = size[at]
    return grants


@compiled
def relax(total: Any, before: Any, choice: NDArray[np.int16], gain: Any, mark: np.int16) -> None:
    """One size of one job at every number of devices: where gain + before beats the total, both are noted (by selects, which vectorise)."""
    for k in range(total.size):
        other = gain + before[k]
        better = other > total[k]
        total[k] = other if better else total[k]
        choice[k] = mark if better else choice[k]


@compiled
def fill_choices(first: Ints, size: Ints, speedup: Floats, kept: Ints, capacity: int, choice: NDArray[np.int16]) -> None:
    """choice[j, k]: which size job j takes when the first j + 1 kept jobs share k devices; the smallest wins a tie."""
    before, now = np.zeros(capacity + 1), np.empty(capacity + 1)
    for j in range(kept.size):
        now[:] = -np.inf
        for at in range(first[kept[j]], first[kept[j] + 1]):
            need = size[at]
            relax(now[need:], before, choice[j, need:], speedup[at], np.int16(at - first[kept[j]]))
        before, now = now, before


# `ffdl`: sizes and batch sizes with the greatest sum of speedups (Saxena et al., MASCOTS 2020).


@dataclass(frozen=True)
class Ffdl(LaysOut):
    """Jobs in order of arrival while their smallest sizes fit; then a dynamic program over GPUs, with the fastest batch at every size.

    A job's batch range is one in which it reaches its accuracy, so a larger batch is as good per sample. What a size is worth is its speed
    with the best batch that fits, relative to one GPU; the sum over all jobs is as large as it can be.
    """

    name = "ffdl"
    paper = "Saxena et al.: Effective Elastic Scaling of Deep Learning Workloads (MASCOTS 2020)"

    batch: str = parameter("adaptive", "'adaptive': the fastest batch at every size; 'fixed': the job's own", one_of=("adaptive", "fixed"))
    resize_cost: float = parameter(0.0, "seconds that a change of size costs; growth that saves less is left out", low=0.0, unit="seconds")
    rate_limit: float = parameter(0.0, RATE_LIMIT, low=0.0, unit="seconds")

    def decide(self, snapshot: Snapshot) -> Plan:
        found = share_again(snapshot, snapshot.memory or {}, [], self._share, self.rate_limit)
        plan = plan_of(snapshot, found.shares, self.devices_of, valid_until=found.until, memory=found.memory)
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
