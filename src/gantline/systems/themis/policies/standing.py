"""The standing of each job and app: rho, the time it will have taken over what it would have taken alone on its part of the cluster.

With n apps present an app's part is the n-th part of the devices. Contention changes while a job lives, so the time alone is added up:
the work between two decisions at the speed that the part of then allows, and what is left at that of now. (The objective that Gavel
calls finish-time fairness integrates contention in the same way; OSDI 2020, section 4.2.)
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.model import overrides
from gantline.policies.elastic.pools import Pool

_LEAST = 1e-9


@dataclass(frozen=True)
class Standing:
    """Columns over the jobs of one pool."""

    pool: Pool
    app: Ints  # number of the app that each job belongs to
    age: Floats  # seconds since its arrival
    left: Floats  # estimated work left
    alone: Floats  # work per second on its part of the cluster
    ideal: Floats  # seconds that it will have taken alone on its part
    wait: float  # seconds that a job without devices waits until it may get its part: until the leases end

    @cached_property
    def _slower(self) -> list[float]:
        """Speed of each job across more machines than it needs, over that on as few as can be; few auctions ask for it."""
        found: list[float] = slower_across(self.pool).tolist()
        return found

    @cached_property
    def _without(self) -> Floats:
        return self.wait + self.left / np.maximum(self.alone, _LEAST)

    @cached_property
    def _slowed_by(self) -> Any:
        """The model that knows how nodes slow a gang down, if there is one."""
        model = self.pool.snapshot.performance
        return model if overrides(model, "slowdown") else None

    @property
    def apps(self) -> int:
        return int(self.app.max(initial=-1)) + 1

    def rho(self, job: int, rate: float) -> float:
        """Its rho if the job runs on at that speed; at speed zero it waits for the next auction and then has its part."""
        ahead = self.left[job] / rate if rate > 0.0 else self._without[job]
        return float((self.age[job] + ahead) / self.ideal[job])

    def sizes(self, job: int) -> list[int]:
        """The sizes that a job may have, in rising order."""
        curves = self.pool.curves
        found: list[int] = curves.size[curves.first[job] : curves.first[job + 1]].tolist()
        return found

    def asked_size(self, job: int) -> int:
        """The size that a job asks for, or the largest below; zero: it has none."""
        sizes = self.sizes(job)
        below = bisect_right(sizes, self.pool.of(self.pool.snapshot.jobs.gpus)[job])
        return sizes[max(below - 1, 0)] if sizes else 0

    def rate(self, job: int, nodes: dict[int, int]) -> float:
        """Work per second of a job with so many devices on each of these nodes."""
        curves = self.pool.curves
        below = bisect_right(self.sizes(job), sum(nodes.values()))
        if not below:
            return 0.0
        rate = float(curves.rate[curves.first[job] + below - 1])
        if (model := self._slowed_by) is not None:
            name = self.pool.snapshot.models[self.pool.snapshot.jobs.model[self.pool.jobs[job]]]
            return rate / float(model.slowdown(name, tuple(nodes), self.pool.snapshot.cluster.description))
        return rate * self._slower[job] if self._is_torn(nodes) else rate

    def rates(self, on: dict[int, dict[int, int]]) -> dict[int, float]:
        """The same of many jobs, each on nodes of its own."""
        return {job: self.rate(job, nodes) for job, nodes in on.items()}

    def _is_torn(self, nodes: dict[int, int]) -> bool:
        """Whether a gang is on more nodes than it needs."""
        if len(nodes) == 1:
            return False
        size = int(self.pool.snapshot.cluster.node_gpus[list(nodes)].max())
        return len(nodes) > -(-sum(nodes.values()) // size)


def standing(pool: Pool, memory: dict[str, Any], wait: float) -> tuple[Standing, dict[str, Floats | Ints]]:
    """The standing of each job in a pool, and what to remember of it."""
    snapshot, jobs = pool.snapshot, pool.snapshot.jobs
    app = _apps(pool)
    rows = pool.of(jobs.rows)
    alone = _alone(pool, app)
    done = pool.of(jobs.done)
    spent = done / np.maximum(alone, _LEAST)
    if before := memory.get("standing"):
        known = np.asarray(before["row"])
        place = np.full(int(max(rows.max(initial=0), known.max(initial=0))) + 1, -1)
        place[known] = np.arange(len(known))
        seen, at = place[rows] >= 0, place[rows][place[rows] >= 0]
        worked = np.maximum(done[seen] - np.asarray(before["done"])[at], 0.0)
        spent[seen] = np.asarray(before["spent"])[at] + worked / np.maximum(np.asarray(before["speed"])[at], _LEAST)
    left = np.maximum(pool.of(jobs.remaining), 0.0)
    ideal = np.maximum(spent + left / np.maximum(alone, _LEAST), _LEAST)
    kept = {"row": rows, "spent": spent, "done": done, "speed": alone}
    age = np.maximum(snapshot.now - pool.of(jobs.arrival), 0.0)
    return Standing(pool, app, age, left, alone, ideal, wait), kept


def _apps(pool: Pool) -> Ints:
    """Jobs that name an app belong together; every other job is one of its own. Apps are numbered by their first job."""
    snapshot = pool.snapshot
    names = snapshot.apps
    if not any(names):
        return np.arange(len(pool))
    found: dict[str | int, int] = {}
    number = np.zeros(len(pool), dtype=np.int64)
    for k, (code, row) in enumerate(zip(pool.of(snapshot.jobs.app).tolist(), pool.of(snapshot.jobs.rows).tolist())):
        name = names[code] if 0 <= code < len(names) else ""
        number[k] = found.setdefault(name or row, len(found))
    return number


def _alone(pool: Pool, app: Ints) -> Floats:
    """Speed of each job on its part of the pool: that of its app, shared equally by the jobs of the app."""
    curves = pool.curves
    members = np.bincount(app)
    part = pool.capacity / max(len(members), 1) / members[app]
    entry = curves.at_most(np.floor(part).astype(np.int64))
    speed = np.ones(len(pool))
    some = curves.count > 0
    least = curves.first[:-1][some]
    below = curves.rate[least] * np.minimum(part[some] / curves.size[least], 1.0)  # a part too small to run on: a part of the time
    speed[some] = np.where(entry[some] >= 0, curves.rate[np.maximum(entry[some], 0)], below)
    return speed


def slower_across(pool: Pool) -> Floats:
    """How much slower each job is across more machines than it needs, by its options."""
    options, jobs = pool.snapshot.options, pool.snapshot.jobs
    count = pool.of(jobs.option_count)
    owner = np.repeat(np.arange(len(pool)), count)
    row = np.arange(len(owner)) + np.repeat(pool.of(jobs.option_first) - np.cumsum(count) + count, count)
    rate, spread = options.rate[row], options.rate_spread[row]
    mine = np.flatnonzero((options.type[row] == pool.kind) & (rate > 0.0))
    found = np.ones(len(pool))
    if len(mine):
        first = np.flatnonzero(np.diff(owner[mine], prepend=-1))
        found[owner[mine[first]]] = np.minimum.reduceat(spread[mine] / rate[mine], first)
    return found
