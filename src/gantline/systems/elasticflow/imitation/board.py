"""What ElasticFlow's planning reads and writes, as bundles that compiled functions take."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats, Ints


class StepMap(NamedTuple):
    """A number of GPUs from each breakpoint on."""

    t: Floats
    v: Ints


class Board(NamedTuple):
    """Everything planning reads and writes; one column per job of the trace."""

    rem: Floats  # iterations left
    deadline: Floats
    speed: Floats  # per job and level
    top: Ints  # largest level of each job
    capacity: int
    slot: float
    free_t: Floats  # the free map, room[0] breakpoints
    free_v: Ints
    plan_t: Floats  # entries of all plans, room[1] used
    plan_v: Ints
    known: Ints
    times: Floats
    room: Ints
    scratch_t: Floats  # three more maps
    scratch_v: Ints
    out: Floats
