"""Numbers that steer the kernels: what the regime, the placement rule, the costs and the last plan say."""

from __future__ import annotations

from typing import Final, NamedTuple

from gantline.core.arrays import Floats, Ints

# switches
S_RULE: Final = 0  # which compiled choice the placement rule is, see placement.fit
S_WHOLE: Final = 1  # gangs larger than a node take whole idle nodes
S_PREEMPT: Final = 2
S_MISFIT: Final = 3
S_KEEP_EVICTIONS: Final = 4  # Blox: victims of a job that then does not fit stay stopped
S_LEAST_LOST: Final = 5  # victims are those that lose least, in place of those that rank lowest
S_SEED: Final = 6
S_BOUNDARY: Final = 7  # finishes are seen at round boundaries only
S_MONOTONE: Final = 8  # properties of the placement rule, see placement.rule
S_ONE_NODE: Final = 9
S_TOGETHER: Final = 10
SI_COUNT: Final = 11

# amounts
S_START: Final = 0  # seconds from grant to progress, first time
S_RESUME: Final = 1  # the same after a stop
S_MIN_RUN: Final = 2  # a gang may not be stopped before
S_CREDIT: Final = 3  # seconds from start until the first result counts (responsiveness; Blox: one round)
S_MOVE: Final = 4  # seconds from grant to progress, when a gang goes on elsewhere at once
S_DOUBLING: Final = 5  # what each doubling of a gang's devices adds to a cost that is not zero
S_RESIZE: Final = 6  # seconds at rate zero when a gang changes its size in place
SF_COUNT: Final = 7


class EngineRules(NamedTuple):
    """The same for every gang."""

    switch: Ints
    amount: Floats
