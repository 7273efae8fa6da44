"""What Gavel's round loop works on: jobs, tasks, devices and counters as arrays with names."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants


class RoundTime(Constants):
    """Numbers of the run: `clock`."""

    NOW: Final = 0
    BEGAN: Final = 1  # begin of the present round
    LAST_END: Final = 2  # end of the round before
    LAST_RESET: Final = 3  # when shares were computed last
    LENGTH: Final = 4  # of a round
    SPACING: Final = 5  # least time between two computations of shares
    UNTIL: Final = 6  # the run stops here


class RoundCount(Constants):
    """Counters: `count`."""

    TASKS: Final = 0
    NEXT: Final = 1  # next job to arrive
    ACTIVE: Final = 2
    STALE: Final = 3  # jobs have come or gone since shares were computed
    ORDER: Final = 4  # next row of the orders of types
    RUNNING: Final = 5  # tasks that run in this round
    LEFT: Final = 6  # tracked jobs that have not ended
    STEP: Final = 7  # of the loop, where it goes on
    ROUNDS: Final = 8
    GPU_ROUNDS: Final = 9
    EXTENDED: Final = 10  # leases extended: the same devices as in the round before
    EXTENDABLE: Final = 11
    MOST: Final = 12  # most jobs at a time


class RoundStep(Constants):
    """Steps of the loop."""

    CLOSE: Final = 0  # the round that runs ends
    ADMIT: Final = 1  # arrived jobs enter
    TURNS: Final = 2  # the next round is filled


class GavelRules(NamedTuple):
    """What is fixed for the run."""

    low: int  # tracked jobs [low, high)
    high: int
    strict: bool  # no turns without a share
    packs: bool
    one_order: bool  # types are filled in one order in all rounds
    artifact: bool  # the artifact's slips: see `gavel_rounds`
    across: bool  # gangs that span nodes have speeds of their own


class GavelJobs(NamedTuple):
    """One row per job of the trace."""

    F: Floats
    I: Ints
    steps: Floats
    done: Floats
    key: Ints  # its row in the tables of pairs
    failures: Ints  # in a row
    seen: Ints  # the last round in which it ran
    speed: Floats  # [job, type] steps per second
    speed_across: Floats  # the same for gangs that span nodes
    option: Ints  # [job, type] row of the option table
    busy: Ints  # scratch


class GavelPairs(NamedTuple):
    """Own steps per second [key, other key, type]: as the policy believes, and as it is."""

    believed: Floats
    truth: Floats
    truth_across: Floats


class Tasks(NamedTuple):
    """Jobs, and pairs of jobs that may share devices, in order of admission."""

    share: Floats  # [task, type]
    time: Floats
    deficit: Floats
    speed: Floats  # the slower of the two, as believed
    first: Ints
    second: Ints  # -1: alone
    need: Ints  # devices
    known: Ints  # shares were computed with it
    type: Ints  # where it runs in this round; -1: not
    before: Ints  # where it ran in the round before on the devices it still has
    turn: Ints
    held: Ints  # [task, place] devices
    finish: Floats  # end of its turn
    steps: Floats  # [task, 2] steps of its turn
    chosen: Ints  # scratch
    heap: Ints
    priority: Floats


class GavelDevices(NamedTuple):
    """Devices are numbered through the types in the order of the policy's types."""

    capacity: Ints  # [type]
    first: Ints  # [type] first device
    node: Ints  # [device]
    name: Ints  # [device] its number in the cluster
    total: Floats  # [type] time received by all tasks since shares were computed
    held: Floats  # [type] device-seconds credited
    paid: Floats  # [type] the same with both members of a pair
    free: Ints  # scratch
    taken: Ints  # scratch


def new_tasks(room: int, types: int, largest: int) -> Tasks:
    """Room for so many tasks."""

    def table() -> Floats:
        return np.zeros((room, types))

    def column() -> Ints:
        return np.zeros(room, dtype=np.int64)

    return Tasks(
        table(), table(), table(), table(), column(), column(), column(), column(), column(), column(), column(),
        np.zeros((room, largest), dtype=np.int64), np.zeros(room), np.zeros((room, 2)), column(), column(), np.zeros(room),
    )  # fmt: skip


def more_room(tasks: Tasks) -> Tasks:
    """The same tasks with twice the room."""
    old = len(tasks.first)
    larger = new_tasks(2 * old, tasks.share.shape[1], tasks.held.shape[1])
    for new, had in zip(larger, tasks):
        new[:old] = had
    return larger
