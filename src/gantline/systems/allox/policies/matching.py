"""AlloX's min-cost matching of jobs to machines and positions (AlloX, EuroSys 2020, section 4.1).

Counted from the end, a job in position k of a machine delays itself and the k - 1 jobs behind it, so a schedule's total
completion time is the sum over jobs of ``release + k * time``, and the best schedule is a least-cost bipartite matching
of jobs to (machine, position) slots. `match` solves it by way of classes (see ``slot_flow.py``), from the prices of an
earlier solve if there are any, and always gives the same answer to the same instance. `sequence` turns classes into machines.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import compiled_from_zero as compiled
from gantline.systems.allox.policies.columns import TICKS, SlotPrices, State, pack, recall, remember, to_ticks, unpack
from gantline.systems.allox.policies.slot_flow import solve_slots
from gantline.systems.allox.policies.slot_ties import settle


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


@compiled
def sequence(times: Ints, release: Ints, offset: Ints, levels: int, place: Ints) -> tuple[Ints, Ints]:
    """Give each job a machine (index into ``release``) and a starting time.

    Jobs of one class may swap machines at no cost, so within a class the earliest arrival gets the machine that is
    ready first (equal ones: in the order of ``release``). Positions are filled from the front, from the highest k.
    """
    jobs = place.size
    machine, begin = np.full(jobs, -1, np.int64), np.zeros(jobs, np.int64)
    ready = release.copy()
    count = np.zeros((offset.size - 1) * levels + 1, np.int64)
    for j in range(jobs):
        count[place[j] + 1] += 1
    for k in range(1, count.size):
        count[k] += count[k - 1]
    slot, first = count, count.copy()
    members = np.zeros(jobs, np.int64)
    for j in range(jobs):
        members[slot[place[j]]] = j
        slot[place[j]] += 1
    for t in range(offset.size - 1):
        for k in range(levels - 1, -1, -1):
            c = t * levels + k
            size = first[c + 1] - first[c]
            if size == 0:
                continue
            by_ready = np.argsort(ready[offset[t] : offset[t] + size], kind="mergesort")
            for i in range(size):
                j, m = members[first[c] + i], offset[t] + by_ready[i]
                machine[j], begin[j] = m, ready[m]
                ready[m] += times[t, j]
    return machine, begin
