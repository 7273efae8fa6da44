"""Profiling before a decision: every job makes its short runs on each of its ways, and is matched when all are made.

AlloX (EuroSys 2020, section 5) estimates times by two short runs per device, which occupy devices like any other run. They
come first, in order of arrival, one at a time for each job; a kind of device on which one finds no room is closed to the
others behind it. What they show is in the estimates (`--estimates sampled:S`); what they do is not lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.columns import Option
from gantline.core.errors import UsageError
from gantline.core.phases import PENDING
from gantline.core.snapshot import Snapshot
from gantline.models.sampling import Sampler
from gantline.systems.allox.policies import gather

PURPOSE = "profile"


def check_profile(profile: bool, preemptive: bool) -> None:
    """Short runs are not preempted, so a preemptive policy cannot make them."""
    if profile and preemptive:
        raise UsageError("short runs would be preempted", where="profile", fix="use a policy that does not preempt, or leave out profile")


class Samples:
    """The short runs of one instant: the jobs that make one now, begin one, and still have to.

    ``made`` says how many each row (as text) has begun; `made` afterwards is what to remember.
    """

    def __init__(self, snapshot: Snapshot, made: Mapping[str, int], sampler: Sampler) -> None:
        self.NF, self.NI, _ = snapshot.cluster.matrices()
        self.types = len(snapshot.cluster.types)
        jobs = snapshot.jobs
        self.limits: dict[int, float] = {}  # of the runs under way, by position
        self.waiting: list[int] = []  # positions that are not to be matched yet
        self.begins: list[tuple[int, int, float]] = []  # position, option and seconds of the runs that begin now
        self.made: dict[str, int] = {}
        self.taken: Floats = np.zeros(3 * self.types)
        self.machines: list[tuple[int, float]] = []  # kind and end of every machine that they take
        closed: set[int] = set()
        for position, row in enumerate(jobs.rows.tolist()):
            begun, first = made.get(str(row), 0), int(jobs.option_first[position])
            grant = jobs.grant(position)
            if grant is not None and grant.assignment.purpose == PURPOSE:
                self.limits[position] = grant.assignment.limit
            elif jobs.phase[position] == PENDING and begun < len(sampler.shares) * int(jobs.option_count[position]):
                self.waiting.append(position)
                way, number = divmod(begun, len(sampler.shares))
                begun += self._begin(snapshot, position, first + way, sampler, sampler.shares[number], closed)
            if begun:
                self.made[str(row)] = begun

    @classmethod
    def after(cls, snapshot: Snapshot) -> Samples:
        """Those of this instant, with what the memory of the last one says under ``samples``."""
        return cls(snapshot, (snapshot.memory or {}).get("samples", {}), Sampler())

    def _begin(self, snapshot: Snapshot, position: int, option: int, sampler: Sampler, share: float, closed: set[int]) -> int:
        """Begin a run if there is room; how many began."""
        jobs, OF, OI = snapshot.jobs, snapshot.options.F, snapshot.options.I
        need = np.empty(3 * self.types)
        kind = gather.need_of(OF, OI, option, self.types, need)
        if kind in closed or gather.take_seats(OF, OI, self.NF, self.NI, np.array([option])) >= 0:
            closed.add(kind)
            return 0
        speed = float(jobs.metric(f"speed.{snapshot.cluster.types[kind // 2]}")[position])
        rate = float(OF[Option.RATE, option]) * (1.0 if np.isnan(speed) else speed)
        seconds = max(sampler.shortest, share * float(jobs.estimate[position]) / rate)
        self.begins.append((position, option - int(jobs.option_first[position]), seconds))
        self.taken += need
        self.machines += [(kind, snapshot.now + seconds)] * max(1, int(need[kind // 2]))
        return 1
