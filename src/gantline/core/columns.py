"""The columns of the tables: jobs, options, nodes and devices, each a matrix of floats and one of integers.

Jobs live in two matrices, ``F`` (float64) and ``I`` (int64), of shape (columns, rows), one row per job for life. Compiled
kernels take the matrices and index them with the constants below; Python code reads single columns as NumPy views. Two
arguments instead of forty is what keeps a kernel call at about a microsecond. In memory a column lies together: rows are
numbered by arrival, so the thousands that wait are nearly neighbours, and the few hundred that run stay in the cache
either way.

Columns that move with time are linear between events. For a running row, with ``dt = max(0, now - F[Job.SINCE])``:

    work done   = F[Job.DONE]    + F[Job.RATE] * dt
    service     = F[Job.SERVICE] + dt                  (seconds run)
    GPU service = F[Job.GPUTIME] + I[Job.HELD] * dt    (GPU-seconds run)

so a start-up cost of 30 s is simply ``SINCE = now + 30``: the job holds its devices at rate zero until then. Because nothing is
accumulated step by step, looking at a job more often never changes its numbers: skipping rounds equals stepping through them.
"""

from __future__ import annotations

from typing import Final

from gantline.core.constants import Constants


class Job(Constants):
    """One row per job."""

    # F: floats
    WORK: Final = 0  # its true amount of work; only an executor in virtual time may read it
    DONE: Final = 1  # work done at SINCE
    RATE: Final = 2  # work per second since SINCE
    SINCE: Final = 3  # time of the last change (may lie ahead while a job starts)
    KEY: Final = 4  # rank of the last decision
    ESTIMATE: Final = 5  # estimated total work, what policies see
    SERVICE: Final = 6  # seconds run until SINCE
    GPUTIME: Final = 7  # GPU-seconds run until SINCE
    ARRIVAL: Final = 8  # when the job was submitted
    SAFE: Final = 9  # work that survives a failure (checkpointed)
    FIRST_START: Final = 10  # first time it was given devices (NaN: never)
    LAST_START: Final = 11  # start of the present run
    FINISH: Final = 12  # end (NaN: not yet)
    DEADLINE: Final = 13  # absolute; NaN: none
    PRIORITY: Final = 14  # higher first
    WEIGHT: Final = 15  # fair-share weight
    LOST: Final = 16  # work lost to failures
    CHECKPOINT: Final = 17  # seconds between checkpoints (inf: only when stopped on purpose; 0: always safe)
    ADMITTED: Final = 18  # when admission let it in (NaN: not yet)
    UNTIL: Final = 19  # end of the present lease (inf: until revoked)
    WAITED: Final = 20  # seconds spent waiting until SINCE, for rows that wait
    MARK: Final = 21  # instant the first result was credited (responsiveness)
    DUE: Final = 22  # while it runs: when it is done, or its estimate proves too low
    SPEED_UNTIL: Final = 23  # when its speed changes by itself (inf: never)
    LIMIT_END: Final = 24  # when its run ends by itself (inf: never)
    # I: integers
    PHASE: Final = 0  # see phases.Phase
    HELD: Final = 1  # devices held now
    HEAD: Final = 2  # first device of its gang (-1: none); the rest are linked by Device.NEXT
    OPTION: Final = 3  # row of the option in use (-1: none)
    FLAGS: Final = 4  # scratch of the walk
    LOCKED: Final = 5  # 1: the present grant must stay
    GPUS: Final = 6  # devices asked for
    INTERVAL: Final = 7  # row of the open interval in the log (-1: none)
    OPTION_FIRST: Final = 8  # its options are rows [first, first + count) of the option table
    OPTION_COUNT: Final = 9
    SMALLEST: Final = 10  # devices of its smallest option
    NODE: Final = 11  # node of a grant without devices (CPU option), else -1
    EPOCH: Final = 12  # number of grants so far: the fencing token of the present one
    REASON: Final = 13  # why it is not running, see reasons.Reason
    SPREAD: Final = 14  # nodes its gang spans now
    CONSOLIDATE: Final = 15  # 1: placement-sensitive by its model (Tiresias' skew rule); ASKED_TOGETHER: the job must be on one node
    USER: Final = 16
    QUEUE: Final = 17
    APP: Final = 18
    PREEMPTIONS: Final = 19
    RESTARTS: Final = 20
    MIN_GPUS: Final = 21
    MAX_GPUS: Final = 22
    MODEL: Final = 23
    RESERVED: Final = 24  # devices that are kept for it (0: none)


class Option(Constants):
    """One row per way in which a job may run."""

    # OF: floats
    RATE: Final = 0  # work per second when the gang sits on as few nodes as it can
    RATE_SPREAD: Final = 1  # work per second when it spans more
    CPUS: Final = 2  # CPUs per device (or in all, for an option without devices)
    MEMORY: Final = 3  # GB per device (or in all)
    STORAGE: Final = 4  # MB/s of storage per device (or in all)
    # OI: integers
    TYPE: Final = 0  # device type
    GPUS: Final = 1  # devices
    NODES: Final = 2  # nodes it must span exactly (0: no matter)


class Node(Constants):
    """One row per node."""

    # NF: floats
    CPUS: Final = 0  # free CPUs
    MEMORY: Final = 1  # free GB
    STORAGE: Final = 2  # free MB/s of storage
    # NI: integers
    TYPE: Final = 0
    FREE: Final = 1  # free devices (0 while down)
    GPUS: Final = 2  # devices in all
    FIRST: Final = 3  # its devices are [first, first + gpus)
    UP: Final = 4  # 1: usable
    RACK: Final = 5
    RECLAIM: Final = 6  # scratch of the walk: devices that lower-ranked gangs would give up
    CLOSED: Final = 7  # its devices that are cordoned, held or not


class Device(Constants):
    """One row per device, integers only (D)."""

    HOLDER: Final = 0  # row that holds it, or FREE, DOWN, SHARED
    NEXT: Final = 1  # next device of the same gang (-1: last)
    NODE: Final = 2
    CLOSED: Final = 3  # 1: cordoned, it takes no new gang


# in Device.HOLDER
FREE: Final = -1
DOWN: Final = -2
SHARED: Final = -3  # see engine.sharing
ASKED_TOGETHER: Final = 2  # in Job.CONSOLIDATE
DEVICE_MEMORY: Final = "device_memory"  # the metric: GB that a job needs on each device
# what gangs take beside devices, as nodes, options and assignments call it: Node.CPUS + k is what is free of Option.CPUS + k
HOST_RESOURCE_NAMES: Final = ("cpus", "memory", "storage")
HOST_RESOURCES: Final = 3

JOB_FLOATS: Final = 25
JOB_INTS: Final = 25
OPTION_FLOATS: Final = 5
OPTION_INTS: Final = 3
NODE_FLOATS: Final = 3
NODE_INTS: Final = 8
