"""AlloX's min-cost matching of jobs to machines and positions (AlloX, EuroSys 2020, section 4.1).

Counted from the end, a job in position k of a machine delays itself and the k - 1 jobs behind it, so a schedule's total
completion time is the sum over jobs of ``release + k * time``, and the best schedule is a least-cost bipartite matching
of jobs to (machine, position) slots. `match` solves it by way of classes (see ``flow.py``), from the prices of an
earlier solve if there are any, and always gives the same answer to the same instance. `match_from_scratch` writes all
slots out and hands them to SciPy; it is the oracle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.systems.allox.policies.columns import SlotPrices
from gantline.systems.allox.policies.sequence import sequence
from gantline.systems.allox.policies.slot_flow import solve_slots
from gantline.systems.allox.policies.slot_ties import settle
from gantline.systems.allox.policies.state import State, pack, recall, remember, unpack
from gantline.systems.allox.policies.ticks import TICKS, to_ticks


@dataclass(frozen=True)
class Matching:
    """A schedule of the waiting jobs: per job its machine, its position from the end and its start."""

    machine: Ints
    position: Ints
    begin: Floats
    first: npt.NDArray[np.bool_]  # heads its machine's list
    total: float  # sum of completion times
    repairs: int  # paths that the solver had to find: how much changed

    def starting(self, idle: npt.NDArray[np.bool_]) -> Ints:
        """The jobs to start now: those that head the list of an idle machine, in order of their machines."""
        jobs = np.flatnonzero(self.first & idle[self.machine])
        return jobs[np.argsort(self.machine[jobs], kind="stable")]


def match(
    times: Floats,
    machine_type: Ints,
    release: Floats,
    *,
    jobs: Ints | None = None,
    state: State | None = None,
) -> tuple[Matching, State]:
    """Match jobs, in order of arrival, to machines; also return what makes the next solve quick.

    ``times[j, t]`` is how long job j takes on type t (infinite or NaN where it cannot run), ``release[i]`` when machine
    i of type ``machine_type[i]`` is free, on any clock as long as it is the same from solve to solve. ``jobs`` are
    numbers that name the rows from one solve to the next. The state is plain data and changes the effort, never the
    answer.
    """
    count, types = times.shape
    ticks, until = to_ticks(times, release)
    names = np.arange(count) if jobs is None else np.asarray(jobs, dtype=np.int64)
    by_release = np.lexsort((until, machine_type))
    offset = np.searchsorted(machine_type[by_release], np.arange(types + 1)).astype(np.int64)
    free_at = until[by_release]
    price, depth, place = recall(unpack(state, types), names)
    repairs = solve_slots(ticks, free_at, offset, price, depth, place)
    if repairs < 0:
        lost = [int(name) for name, row in zip(names, times) if not any(np.isfinite(row[np.diff(offset) > 0]))]
        raise UsageError(f"jobs {lost} can run on none of the machines", fix="give each an option for a device type that is present")
    settle(ticks, free_at, offset, price, depth, place)
    slot, begin = sequence(ticks, free_at, offset, price.shape[1], place)
    kind, position = np.divmod(place, price.shape[1])
    position += 1
    total = float((free_at[slot] + position * ticks[kind, np.arange(count)]).sum()) / TICKS
    found = Matching(by_release[slot], position, begin / TICKS, begin == free_at[slot], total, int(repairs))
    return found, pack(remember(names, SlotPrices(price, depth, place)))


def match_from_scratch(times: Floats, machine_type: Ints, release: Floats) -> tuple[float, Ints, Ints]:
    """The oracle: every slot a column, SciPy's solver; the least total, and per job a machine and a position."""
    jobs, machines = len(times), len(machine_type)
    deepest = max(jobs, 1)
    cost = release + np.arange(1, deepest + 1)[:, None, None] * times[:, machine_type]
    cost = np.where(np.isfinite(cost), cost, 1e15).transpose(1, 0, 2).reshape(jobs, deepest * machines)
    rows, slots = linear_sum_assignment(cost)
    return float(cost[rows, slots].sum()), slots % machines, slots // machines + 1
