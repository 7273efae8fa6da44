"""What a walk remembers while it goes through the ranks: rows of one scratch matrix, under names."""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Ints
from gantline.core.constants import Constants
from gantline.core.jit import kernel

#: rows of the scratch matrix, in the order of the fields of `Notes`
SCRATCH_ROWS: Final = 16
ORDER: Final = 15  # that of `Notes.order`


class Walk(Constants):
    """What `Notes.number` holds."""

    AT_RUNNING: Final = 0  # how far the walk has come among those that run
    AT_WAITING: Final = 1  # and among those that wait
    BACK: Final = 2  # where the next victim is looked for, from the lowest rank up
    VICTIMS: Final = 3  # gangs that lost their devices
    SAVED: Final = 4  # devices of theirs that are remembered
    UNDECIDED: Final = 5  # victims that have not had their turn
    BY_NODE: Final = 6  # 1: what could be given up is counted per node
    CLEARED: Final = 7  # 1: the last gangs that were stopped had to sit on one node
    STARTED: Final = 8
    STOPPED: Final = 9
    TYPES: Final = 10  # device types
    HOPE: Final = 11  # the largest gang that might still get devices
    HOPEFUL: Final = 12  # how many of those still to come are that small


WALK_COUNTS: Final = 13


class Notes(NamedTuple):
    """Nodes and counts of the place found last; victims; what there is per type and node; the rows still to come."""

    nodes: Ints
    counts: Ints
    victim: Ints  # its row
    saved: Ints  # devices of all victims, one after the other
    offset: Ints  # of each victim's first device among these
    option: Ints  # that it had
    node: Ints  # that it had, where its option has no devices
    free: Ints  # by type: free devices
    reclaim: Ints  # by type: devices that those behind would give up
    apart: Ints  # by type: a larger gang may find a place although one of up to this size did not
    tried: Ints  # by type, for each side of `apart` (`slot`): from this size on nothing was found among free devices
    tried_all: Ints  # the same: from this size on nothing was found at all
    gain: Ints  # by node
    ahead: Ints  # by size of the smallest option: rows that have not had their turn
    number: Ints
    order: Ints  # rows that run, those first that would lose most; filled only where victims are chosen by what they lose


@kernel
def notes_on(scratch: Ints) -> Notes:
    """The rows of the scratch matrix under their names."""
    return Notes(
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[6],
        scratch[7], scratch[8], scratch[9], scratch[10], scratch[11], scratch[12], scratch[13], scratch[14], scratch[15],
    )  # fmt: skip


@kernel
def slot(notes: Notes, kind: int, need: int) -> int:
    """Where `tried` and `tried_all` keep what was found out about gangs of such a size."""
    return kind if need <= notes.apart[kind] else kind + notes.number[Walk.TYPES]
