"""Lists of the rows that are active, running and waiting; and the counters of the loop."""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Ints
from gantline.core.constants import Constants


class RowCount(Constants):
    """What `Lists.number` says."""

    ACTIVE: Final = 0  # rows in `active`
    RUNNING: Final = 1  # rows in `running`
    WAITING: Final = 2  # rows in `waiting`
    NEXT: Final = 3  # next row to arrive
    HELD: Final = 4  # next row that admission has not let in
    FINISHED: Final = 5  # finished by the last advance
    ADMITTED: Final = 6  # let in by the last arrive


class Lists(NamedTuple):
    """Longer than what they list: `number` says how much of each is in use."""

    active: Ints  # in order of arrival
    running: Ints  # in rank order
    waiting: Ints  # in rank order
    number: Ints  # ACTIVE .. ADMITTED
    demand: Ints  # how many wait, by the size of their smallest option
