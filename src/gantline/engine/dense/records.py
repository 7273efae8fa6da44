"""A row's own line: what the loop needs of a job, together in memory, while the columns of the tables lie far apart.

The loop on records works on these and writes the columns when it ends. `f` and `i` have one line per row.
"""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats, Ints32
from gantline.core.constants import Constants


class Record(Constants):
    """Places in a row's own line."""

    (WORK, DONE, SINCE, RATE, ESTIMATE, SERVICE, GPUTIME, ARRIVAL) = range(8)
    (KEY, FIRST_START, LAST_START, WAITED, FINISH, ADMITTED, PRIORITY, DUE) = range(8, 16)
    # i: whole numbers
    (STATE, NEED, LANE, OPTION, SEGMENT, SPREAD, INTERVAL, STARTS) = range(8)
    (STOPS, VICTIM, WHY) = range(8, 11)
    AT = 11  # and the next three: its places in the heaps, see `heap`; -1: not there


RECORD_FLOATS = 16  # whole cache lines
RECORD_INTS = 16


class Records(NamedTuple):
    f: Floats  # (row, number)
    i: Ints32  # (row, whole number)
