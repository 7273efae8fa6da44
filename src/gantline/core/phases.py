"""The phases of a job's life, shown the same in simulation and live."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """Where a job stands. A plan is intent; the phase is what executors have acknowledged."""

    FUTURE = 0  # not yet submitted (simulation only)
    HELD = 1  # submitted, kept out by admission
    PENDING = 2  # waits for devices
    STARTING = 3  # has devices, does not progress yet
    RUNNING = 4
    CHECKPOINTING = 5  # told to stop, saves its state before it gives devices up
    RESIZING = 6  # goes on with other devices beside some of its old ones, when an executor has made them so
    STOPPING = 7  # saved, devices not free yet
    COMPLETED = 8
    FAILED = 9
    CANCELLED = 10
    REJECTED = 11

    @property
    def active(self) -> bool:
        """Whether policies see the job."""
        return Phase.PENDING <= self <= Phase.STOPPING

    @property
    def terminal(self) -> bool:
        return self >= Phase.COMPLETED

    @property
    def holds_devices(self) -> bool:
        return Phase.STARTING <= self <= Phase.STOPPING


# Plain integers for compiled kernels, which cannot read an enum cheaply.
FUTURE, HELD_BACK, PENDING, STARTING, RUNNING = (int(p) for p in list(Phase)[:5])
CHECKPOINTING, RESIZING, STOPPING, COMPLETED, FAILED, CANCELLED, REJECTED = (int(p) for p in list(Phase)[5:])
