"""What a plan asks for gangs that share devices, or that name their own, and what is kept of each during a commit: columns for kernels."""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants
from gantline.engine.log import LogColumns
from gantline.engine.settings import EngineRules


class Ask(Constants):
    """Lines of `SharedTurns.ask`: the row and its option (below zero: impossible); what it wants; its group; the
    devices that it names, in `named`; where its list of devices is in `gets`; whether its turn in its rotation
    comes again; whether its group starts whole; the first member of its group and the next after it; and, on its
    own, the turns by size, the widest gang first."""

    (ROW, OPTION, WANTS, GROUP, FIRST, COUNT, GETS, RETURNS, WHOLE, LEAD, MATE, WIDEST) = range(12)


class Work(Constants):
    """Lines of `SharedTurns.work`: what it does; what it held (option, number, place in `had`, shared); how many
    devices it keeps meanwhile; what it pays for; how it ended."""

    (CHANGE, OPTION, HELD, HAD, SHARED, KEPT, ACT, END) = range(8)


class Want(Constants):
    """What is wanted: devices of its group; named devices, shared; named devices of its own; a place of its own."""

    JOINS: Final = 0
    SHARES_NAMED: Final = 1
    OWNS_NAMED: Final = 2
    OWN_PLACE: Final = 3


class End(Constants):
    """How a turn ended."""

    UNTOUCHED: Final = 0
    GRANTED: Final = 1
    IN_PART: Final = 2  # all but other CPUs or the like
    RESTORED: Final = 3
    HALTED: Final = 4
    WAITED: Final = 5  # with its group


class SharedTurns(NamedTuple):
    """The gangs of a commit in the order of the plan, and what is kept of each meanwhile."""

    ask: Ints
    work: Ints
    named: Ints
    pool: Ints  # per group the turn whose devices it shares (-1: none yet)
    size: Ints  # how many turns there are; the columns may be longer


class CommitMoment(NamedTuple):
    """When a commit takes place, what holds for every gang in it, and where it is written down."""

    times: Floats  # now, and the seconds that a turn costs
    rules: EngineRules
    log: LogColumns
    scratch: Ints
    out: Ints  # started, stopped
