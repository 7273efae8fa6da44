"""What one event of AlloX works on, as bundles of columns that compiled functions take."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Bools, Floats, Ints


class EngineTables(NamedTuple):
    """The engine's tables: numbers and codes of jobs, of options and of nodes."""

    F: Floats
    I: Ints
    OF: Floats
    OI: Ints
    NF: Floats
    NI: Ints


class WaitingJobs(NamedTuple):
    """Jobs that wait, in order of arrival. ``times`` and ``width`` are [type, job], ``need`` and ``gain`` begin with the job."""

    owner: Ints
    times: Ints  # in ticks
    width: Ints  # machines of a gang
    need: Floats
    gain: Floats  # what a start adds to the score of the owner


class UserScores(NamedTuple):
    """What users have, and how much each counts."""

    score: Floats
    weight: Floats


class MachineColumns(NamedTuple):
    """Machines, each of one type, and what is free of everything else. A machine that is not idle is free at ``release``."""

    kind: Ints
    release: Ints  # in ticks
    idle: Bools
    free: Floats


class SlotPrices(NamedTuple):
    """What the matching solver goes on from, and changes."""

    price: Ints
    depth: Ints
    place: Ints
