"""The phases of a job's life, shown the same in simulation and live."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """Where a job stands. A plan is intent; the phase tells what executors have acknowledged."""

    FUTURE = 0  # not yet submitted (simulation only)
    HELD = 1  # submitted, kept out by admission
    PENDING = 2  # waits for devices
    STARTING = 3  # has devices, does not progress yet
    RUNNING = 4
    CHECKPOINTING = 5  # saves its state before it gives devices up
    RESIZING = 6
    STOPPING = 7  # told to stop, devices not free yet
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

#: Which phase may follow which; anything else is a defect (or a message from a grant that is no longer valid).
ALLOWED: dict[Phase, frozenset[Phase]] = {
    Phase.FUTURE: frozenset({Phase.HELD, Phase.PENDING, Phase.REJECTED}),
    Phase.HELD: frozenset({Phase.PENDING, Phase.REJECTED, Phase.CANCELLED}),
    Phase.PENDING: frozenset({Phase.STARTING, Phase.RUNNING, Phase.HELD, Phase.CANCELLED, Phase.FAILED, Phase.REJECTED}),
    Phase.STARTING: frozenset({Phase.RUNNING, Phase.STOPPING, Phase.PENDING, Phase.FAILED, Phase.COMPLETED}),
    Phase.RUNNING: frozenset({Phase.CHECKPOINTING, Phase.RESIZING, Phase.STOPPING, Phase.PENDING, Phase.COMPLETED, Phase.FAILED}),
    Phase.CHECKPOINTING: frozenset({Phase.STOPPING, Phase.PENDING, Phase.RESIZING, Phase.COMPLETED, Phase.FAILED}),
    Phase.RESIZING: frozenset({Phase.RUNNING, Phase.STOPPING, Phase.PENDING, Phase.COMPLETED, Phase.FAILED}),
    Phase.STOPPING: frozenset({Phase.PENDING, Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED}),
    Phase.COMPLETED: frozenset(),
    Phase.FAILED: frozenset({Phase.PENDING}),
    Phase.CANCELLED: frozenset(),
    Phase.REJECTED: frozenset(),
}
