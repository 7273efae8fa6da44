"""What a job holds when that is more than a gang of its own: shared devices, several roles, a part of the time, a batch size.

The engine keeps one of these per job that has one; policies read it through `snapshot.jobs.grant(position)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gantline.core.plan import Assignment


@dataclass(frozen=True, slots=True)
class Worker:
    """One placed worker of a grant with several roles."""

    role: str
    node: int
    devices: tuple[int, ...] = ()
    cpus: float = 0.0
    memory: float = 0.0
    storage: float = 0.0


@dataclass(frozen=True, slots=True)
class Grant:
    """A job's grant as it was committed. In its assignments `job` is the job's row, which is stable, rather than a position."""

    items: tuple[Assignment, ...]  # more than one only for shares of the time on several types
    members: tuple[frozenset[int], ...] = (frozenset(),)  # per item: rows of its group, itself included
    devices: tuple[int, ...] = ()  # in rank order
    shared: bool = False  # whether others may hold the same devices: those of its group, or all that share without one
    workers: tuple[Worker, ...] = ()  # which worker sits where, for grants with several roles
    side: tuple[tuple[int, float, float, float], ...] = ()  # (node, CPUs, GB, MB/s of storage) held beside what the option in use says
    fluid: tuple[tuple[int, float], ...] = ()  # per item of a time share: (row of its option, devices' worth), on no device in particular

    @property
    def kind(self) -> str:
        """What kind of grant it is; see `gantline.engine.commit.kinds`."""
        if self.fluid:
            return "share of time"
        if self.workers:
            return "parts"
        if self.shared:
            return "shared"
        return "exact" if self.items[0].devices else "gang"

    @property
    def shares_openly(self) -> bool:
        """Whether it shares its devices with all that do the same, without a group."""
        return self.shared and self.items[0].group < 0

    @property
    def assignment(self) -> Assignment:
        """What the plan said (the first share, where there are several)."""
        return self.items[0]
