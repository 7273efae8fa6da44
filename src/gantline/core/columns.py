"""The columns of the job table: one row per job for life, two matrices, one line per column.

Jobs live in two matrices, ``F`` (float64) and ``I`` (int64), of shape (columns, rows). Compiled kernels take the two matrices and index
them with the constants below; Python code reads single columns as NumPy views. Two arguments instead of forty is what keeps
a kernel call at about a microsecond. In memory a column lies together: rows are numbered by arrival, so the thousands that wait are
nearly neighbours, and the few hundred that run stay in the cache either way.

Columns that move with time are linear between events. For a running row, with ``dt = max(0, now - F[SINCE])``:

    work done   = F[DONE]    + F[RATE] * dt
    service     = F[SERVICE] + dt              (seconds run)
    GPU service = F[GPUTIME] + I[HELD] * dt    (GPU-seconds run)

so a start-up cost of 30 s is simply ``SINCE = now + 30``: the job holds its devices at rate zero until then. Because nothing is
accumulated step by step, looking at a job more often never changes its numbers: skipping rounds equals stepping through them.
"""

from __future__ import annotations

from typing import Final

# --- F: float columns -------------------------------------------------------------------------------------------------
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
F_COLUMNS: Final = 25

# --- I: integer columns -----------------------------------------------------------------------------------------------
PHASE: Final = 0  # see phases.Phase
HELD: Final = 1  # devices held now
HEAD: Final = 2  # first device of its gang (-1: none); the rest are linked in `Devices.next`
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
I_COLUMNS: Final = 25
ASKED_TOGETHER: Final = 2  # in CONSOLIDATE

# --- option table: OF (float), OI (int) --------------------------------------------------------------------------------
O_RATE: Final = 0  # work per second when the gang sits on as few nodes as it can
O_RATE_SPREAD: Final = 1  # work per second when it spans more
O_CPUS: Final = 2  # CPUs per device (or in all, for an option without devices)
O_MEMORY: Final = 3  # GB per device (or in all)
O_STORAGE: Final = 4  # MB/s of storage per device (or in all)
OF_COLUMNS: Final = 5
O_TYPE: Final = 0  # device type
O_GPUS: Final = 1  # devices
O_NODES: Final = 2  # nodes it must span exactly (0: no matter)
OI_COLUMNS: Final = 3

# --- node table: NF (float), NI (int) ----------------------------------------------------------------------------------
N_CPUS: Final = 0  # free CPUs
N_MEMORY: Final = 1  # free GB
N_STORAGE: Final = 2  # free MB/s of storage
NF_COLUMNS: Final = 3
BESIDE: Final = 3  # what gangs take beside devices: N_CPUS + k is what is free of O_CPUS + k
BESIDE_NAMES: Final = ("cpus", "memory", "storage")  # of these, as nodes, options and assignments call them
N_TYPE: Final = 0
N_FREE: Final = 1  # free devices (0 while down)
N_GPUS: Final = 2  # devices in all
N_FIRST: Final = 3  # its devices are [first, first + gpus)
N_UP: Final = 4  # 1: usable
N_RACK: Final = 5
N_RECLAIM: Final = 6  # scratch of the walk: devices that lower-ranked gangs would give up
N_CLOSED: Final = 7  # its devices that are cordoned, held or not
NI_COLUMNS: Final = 8

# --- device table: D (int) ---------------------------------------------------------------------------------------------
D_HOLDER: Final = 0  # row that holds it (-1: free, -2: down, -3: shared, see engine.sharing)
D_NEXT: Final = 1  # next device of the same gang (-1: last)
D_NODE: Final = 2
D_CLOSED: Final = 3  # 1: cordoned, it takes no new gang
D_COLUMNS: Final = 4
FREE: Final = -1
DOWN: Final = -2
SHARED: Final = -3
DEVICE_MEMORY: Final = "device_memory"  # the metric: GB that a job needs on each device
