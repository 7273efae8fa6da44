"""Profiling before a decision: every job makes its short runs on each of its ways, and is matched when all are made.

AlloX (EuroSys 2020, section 5) estimates times by two short runs per device, which occupy devices like any other run. They
come first, in order of arrival, one at a time for each job; a kind of device on which one finds no room is closed to the
others behind it. What they tell is in the estimates (`--estimates sampled:S`); what they do is not lost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.phases import PENDING
from gantline.core.snapshot import Snapshot
from gantline.performance.sampling import Sampler
from gantline.policies.allox import gather, seats

PURPOSE = "profile"


def check_profile(profile: bool, preemptive: bool) -> None:
    """Short runs are not preempted, so whoever preempts cannot make them."""
    if profile and preemptive:
        raise UsageError("short runs would be preempted", where="profile", fix="use a policy that does not preempt, or leave out profile")


class Samples:
    """The short runs of one instant: who makes one now, who begins one, and who still has to.

    ``made`` says how many each row (as text) has begun; `made` afterwards is what to remember.
    """

    def __init__(self, snapshot: Snapshot, made: Mapping[str, int], sampler: Sampler) -> None:
        t = snapshot.tables
        self.NF, self.NI = t.NF.copy(), t.NI.copy()
        self.types = len(t.cluster.types)
        self.limits: dict[int, float] = {}  # of the runs under way, by position
        self.waiting: list[int] = []  # positions that are not to be matched yet
        self.begins: list[tuple[int, int, float]] = []  # position, option and seconds of the runs that begin now
        self.made: dict[str, int] = {}
        self.taken: Floats = np.zeros(3 * self.types)
        self.machines: list[tuple[int, float]] = []  # kind and end of every machine that they take
        closed: set[int] = set()
        for position, row in enumerate(snapshot.jobs.rows.tolist()):
            begun, first = made.get(str(row), 0), int(t.I[c.OPTION_FIRST, row])
            grant = snapshot.jobs.grant(position)
            if grant is not None and grant.assignment.purpose == PURPOSE:
                self.limits[position] = grant.assignment.limit
            elif t.I[c.PHASE, row] == PENDING and begun < len(sampler.shares) * int(t.I[c.OPTION_COUNT, row]):
                self.waiting.append(position)
                way, number = divmod(begun, len(sampler.shares))
                begun += self._begin(snapshot, position, row, first + way, sampler, sampler.shares[number], closed)
            if begun:
                self.made[str(row)] = begun

    @classmethod
    def after(cls, snapshot: Snapshot) -> Samples:
        """Those of this instant, with what the memory of the last one says under ``samples``."""
        return cls(snapshot, (snapshot.memory or {}).get("samples", {}), Sampler())

    def _begin(self, snapshot: Snapshot, position: int, row: int, option: int, sampler: Sampler, share: float, closed: set[int]) -> int:
        """Begin a run if there is room; how many began."""
        t = snapshot.tables
        need = np.empty(3 * self.types)
        kind = gather.need_of(t.options.F, t.options.I, option, self.types, need)
        if kind in closed or seats.take_seats(t.options.F, t.options.I, self.NF, self.NI, np.array([option])) >= 0:
            closed.add(kind)
            return 0
        speed = t.metrics.get(f"speed.{t.cluster.types[kind // 2]}")
        rate = float(t.options.F[c.O_RATE, option]) * (1.0 if speed is None or np.isnan(speed[row]) else float(speed[row]))
        seconds = max(sampler.shortest, share * float(t.F[c.ESTIMATE, row]) / rate)
        self.begins.append((position, option - int(t.I[c.OPTION_FIRST, row]), seconds))
        self.taken += need
        self.machines += [(kind, snapshot.now + seconds)] * max(1, int(need[kind // 2]))
        return 1
