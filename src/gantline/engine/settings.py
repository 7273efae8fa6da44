"""Numbers that steer the kernels: what the regime, the placement rule, the costs and the last plan say."""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants


class Switch(Constants):
    """Places of `EngineRules.switch`."""

    RULE: Final = 0  # which compiled choice the placement rule is, see placement.fit
    WHOLE: Final = 1  # gangs larger than a node take whole idle nodes
    PREEMPT: Final = 2
    MISFIT: Final = 3
    KEEP_EVICTIONS: Final = 4  # Blox: victims of a job that then does not fit stay stopped
    LEAST_LOST: Final = 5  # victims are those that lose least, in place of those that rank lowest
    SEED: Final = 6
    BOUNDARY: Final = 7  # finishes are seen at round boundaries only
    MONOTONE: Final = 8  # properties of the placement rule, see placement.rule
    ONE_NODE: Final = 9
    TOGETHER: Final = 10


class Amount(Constants):
    """Places of `EngineRules.amount`."""

    START: Final = 0  # seconds from grant to progress, first time
    RESUME: Final = 1  # the same after a stop
    MIN_RUN: Final = 2  # a gang may not be stopped before
    CREDIT: Final = 3  # seconds from start until the first result counts (responsiveness; Blox: one round)
    MOVE: Final = 4  # seconds from grant to progress, when a gang goes on elsewhere at once
    DOUBLING: Final = 5  # what each doubling of a gang's devices adds to a cost that is not zero
    RESIZE: Final = 6  # seconds at rate zero when a gang changes its size in place


class EngineRules(NamedTuple):
    """The same for every gang."""

    switch: Ints
    amount: Floats
