"""One instant as AlloX and its baselines see it, and their answer as a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot
from gantline.systems.allox.policies import gather
from gantline.systems.allox.policies.allox import Machines, Waiting
from gantline.systems.allox.policies.columns import EngineTables
from gantline.systems.allox.policies.profiling import PURPOSE, Samples
from gantline.systems.allox.policies.ways import Pool, Ways, Worth

#: How often a decision is made again because one of its jobs finds no node; after that such jobs are left out.
_TRIES = 32


class Instant:
    """The jobs that stay as they are, those that compete, and what these could have.

    With ``everyone`` jobs that run compete too (preemption), and what they hold counts as free. `ways` are the options of those
    that compete, in order of arrival.
    """

    def __init__(self, snapshot: Snapshot, weights: Mapping[str, float], everyone: bool = False, samples: Samples | None = None) -> None:
        self.everyone, self.samples = everyone, samples
        self.snapshot, self.now = snapshot, snapshot.now
        self.F, self.I = F, I = snapshot.jobs.matrices()
        self.OF, self.OI = OF, OI = snapshot.options.F, snapshot.options.I
        self.nodes = NF, NI, D = snapshot.cluster.matrices()
        self.staying, self.staying_option, self.competing = gather.split(I, everyone)
        if samples is not None:
            self.competing = self.competing[~np.isin(self.competing, samples.waiting)]
        self.types, self.users = len(snapshot.cluster.types), len(snapshot.users)
        known = snapshot.jobs.metrics
        corrections = {
            code: snapshot.jobs.metric(f"speed.{name}") for code, name in enumerate(snapshot.cluster.types) if f"speed.{name}" in known
        }
        self._believed = np.ones((self.types if corrections else 0, len(snapshot.jobs)))
        for code, column in corrections.items():
            np.copyto(self._believed[code], column, where=~np.isnan(column))
        self.NF, self.NI = (NF, NI) if samples is None else (samples.NF, samples.NI)
        if everyone:
            self.NF, self.NI = gather.vacate(I, OF, OI, NF, NI, D, self.competing)
        self.capacity, free, used = gather.pool(I, OF, OI, self.NF, self.NI, self.staying, self.users, self.types)
        if samples is not None:
            self.capacity += samples.taken
        owner, self.arrival, weight = gather.owners(F, I, self.competing, self.users)
        for name, value in weights.items():
            weight[[code for code, user in enumerate(snapshot.users) if user == name]] = value
        job, self.option, kind, time, need = gather.ways(
            F, I, OF, OI, self.competing, self.now, self.types, self.capacity, self._speed(self.competing)
        )
        self.ways = Ways(owner, job, kind, time, need)
        self.pool = Pool(self.capacity, free, used, weight)

    def _speed(self, rows: Ints) -> Floats:
        """How much faster than listed each row is believed to be on each type; empty where nothing corrects the list."""
        return self._believed.take(rows, axis=1) if len(self._believed) else np.empty((0, 0))

    # --- the columns of the matching ----------------------------------------------------------------------------------
    def matching(self, ways: Ways) -> tuple[Waiting, Machines, Floats, Ints]:
        """Waiting jobs and machines by kinds, the users' scores, and the way behind each (job, kind)."""
        F, I, OF, OI = self.F, self.I, self.OF, self.OI
        speed = self._speed(self.staying)
        way, seconds, gain, further, width = gather.by_kind(ways.owner, ways.job, ways.kind, ways.time, ways.need, self.capacity)
        kind, release, idle = gather.machines(
            EngineTables(F, I, OF, OI, self.NF, self.NI), self.staying, self.now, self.types, ways.kind, ways.need, speed
        )
        if self.samples is not None and self.samples.machines:
            kinds, ends = zip(*self.samples.machines)
            kind, release = np.concatenate((kind, np.array(kinds, np.int64))), np.concatenate((release, np.array(ends)))
            idle = np.concatenate((idle, np.zeros(len(ends), np.bool_)))
        score = gather.scores(I, OF, OI, self.staying, self.users, self.capacity, speed)
        waiting = Waiting(self.snapshot.jobs.rows[self.competing], ways.owner, self.arrival, seconds, gain, further, width)
        return waiting, Machines(kind, release, idle, self.pool.free[self.types :]), score, way

    @property
    def worth(self) -> Worth:
        """Cores of all nodes stand in for each other, and so does memory; devices of different types do not."""
        t = self.types
        group = np.concatenate((np.arange(t), np.full(t, t), np.full(t, 2 * t)))
        return Worth(group, np.ones(3 * t))

    @property
    def tier(self) -> Ints:
        """Per kind: devices are tried before cores."""
        return np.tile(np.array([0, 1], dtype=np.int64), self.types)

    # --- the answer ---------------------------------------------------------------------------------------------------
    def seat(self, choose: Callable[[Ways], Ints]) -> Ints:
        """The ways that start, in order, such that each finds room on nodes; `choose` is asked again without one that does not."""
        kept = np.arange(len(self.ways.job))
        for _ in range(_TRIES):
            chosen = kept[choose(self.ways if len(kept) == len(self.ways.job) else self.ways.only(kept))]
            bad = self._unseated(chosen)
            if bad < 0:
                return chosen
            kept = kept[kept != chosen[bad]]
        while bad >= 0:
            chosen = np.delete(chosen, bad)
            bad = self._unseated(chosen)
        return chosen

    def _unseated(self, chosen: Ints) -> int:
        """The first of the chosen ways that finds no node, beside jobs that run already in the way chosen for them."""
        if not len(chosen):
            return -1
        places = self.competing[self.ways.job[chosen]]
        option = self.I[Job.OPTION_FIRST][places] + self.option[chosen]
        NF, NI = self.NF, self.NI
        moving = self.I[Job.OPTION][places] != option
        if self.everyone:
            same = places[~moving]
            leaving = self.competing[~np.isin(self.competing, same)]
            NF, NI = gather.vacate(self.I, self.OF, self.OI, *self.nodes, leaving)
        bad = gather.first_unseated(self.OF, self.OI, NF, NI, option[moving])
        return bad if bad < 0 else int(np.flatnonzero(moving)[bad])

    def plan(self, chosen: Ints, **rest: Any) -> Plan:
        """Jobs that stay keep what they have, short runs begin, and the chosen ways start."""
        if self.samples is not None and (self.samples.limits or self.samples.begins):
            return self._plan_with_samples(self.samples, chosen, **rest)
        job = np.concatenate((self.staying, self.competing[self.ways.job[chosen]]))
        option = np.concatenate((self.staying_option, self.option[chosen]))
        return Plan.assign(Assignments(job, option=option), **rest)

    def _plan_with_samples(self, samples: Samples, chosen: Ints, **rest: Any) -> Plan:
        begins = np.array([position for position, _, _ in samples.begins], dtype=np.int64)
        ways = np.array([option for _, option, _ in samples.begins], dtype=np.int64)
        job = np.concatenate((self.staying, begins, self.competing[self.ways.job[chosen]]))
        option = np.concatenate((self.staying_option, ways, self.option[chosen]))
        limit = np.full(len(job), np.inf)
        for k, position in enumerate(self.staying.tolist()):
            limit[k] = samples.limits.get(position, np.inf)
        limit[len(self.staying) : len(self.staying) + len(begins)] = [seconds for _, _, seconds in samples.begins]
        purpose = tuple("train" if np.isinf(seconds) else PURPOSE for seconds in limit.tolist())
        return Plan.assign(Assignments(job, option=option, limit=limit, purpose=purpose), **rest)
