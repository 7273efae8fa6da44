"""Finish-time fairness and makespan (Gavel, OSDI 2020, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict

import numpy as np
from scipy import sparse

from gantline.core.arrays import Floats
from gantline.models.solvers.feasible_point import feasible_point
from gantline.systems.gavel.policies.allocation import Allocation, isolated_throughput, no_pairs
from gantline.systems.gavel.policies.embedded_cones import stopping_point
from gantline.systems.gavel.policies.instance import Instance, Pairs
from gantline.systems.gavel.policies.optimised import OptimisedPolicy, PackedOptimisedPolicy
from gantline.systems.gavel.policies.program import Program
from gantline.systems.gavel.policies.program import kinds as same
from gantline.systems.gavel.policies.solving import DEFAULT, Solving, alike, best_level, conclude, maximise_gain, minimise_ratio

# Finish-time fairness (Themis' objective in Gavel, OSDI 2020, section 4.2): minimise the largest rho.
#
# ``rho`` of a job is its finish time under the shares over its finish time on an m-th part of the cluster of its own. The
# time the job would have needed so far on its own part is remembered between calls: the share of a job changes with the
# number of jobs, so what it has done is credited at the isolated speed of the time when it did it.
#
# The objective looks at the job that is worst off; ``stops=True`` shares out what is open as the artifact's solver does, by where it stops
# (with pairs: in the centre).


class FairnessMemory(TypedDict):
    """What is carried from call to call: plain lists of [job, number, ...]."""

    isolated_time: list[list[Any]]  # [job, seconds on a part of its own for what it has done]
    last: list[list[Any]]  # [job, steps left, isolated throughput] at the previous call


def finish_time_fairness(
    instance: Instance, memory: FairnessMemory | None = None, solving: Solving = DEFAULT, *, by_weight: bool = False, stops: bool = False
) -> tuple[Allocation, FairnessMemory]:
    """Shares with the smallest largest rho (the objective), and the memory for the next call.

    ``by_weight`` divides throughputs by priority weights, as the artifact does in its packed form.
    """
    if not len(instance):
        kept = memory["isolated_time"] if memory else []
        return Allocation(np.zeros((0, len(instance.types))), no_pairs(instance), 0.0), FairnessMemory(isolated_time=kept, last=[])
    steps, elapsed = instance.needing("steps", "elapsed")
    if by_weight:
        instance = _divided(instance)
    alone = isolated_throughput(instance)
    before = _isolated_time(instance, steps, memory)
    total = before + np.where(alone > 0, steps / np.where(alone > 0, alone, 1.0), 0.0)
    if stops:
        solving = replace(solving, by_kinds=False)  # where that solver stops depends on how many rows there are
    kinds = solving.kinds(instance, steps, total, elapsed)
    program = solving.constraints(instance, kinds)
    first = kinds.first
    point = minimise_ratio(program, steps[first], total[first], elapsed[first], budget=solving.budget)
    if stops and point.solved and not len(kinds.pair_first) and (total > 0).all() and (program.reach > 0).all():
        found = _where_it_stops(program, steps / total, elapsed / total, solving.budget)
        point = point if found is None else replace(point, x=alike(program, found, same(instance, steps, total, elapsed)))
    allocation = conclude(instance, program, point, point.level, solving)
    return allocation, FairnessMemory(
        isolated_time=[[job, float(time)] for job, time in zip(instance.jobs, before)],
        last=[[job, float(left), float(speed)] for job, left, speed in zip(instance.jobs, steps, alone)],
    )


def _isolated_time(instance: Instance, steps: Floats, memory: FairnessMemory | None) -> Floats:
    """Seconds each job would have needed, on a part of its own, for what it has done until now."""
    time = np.zeros(len(instance))
    if memory is None:
        return time
    known = dict(memory["isolated_time"])
    last = {job: (left, speed) for job, left, speed in memory["last"]}
    for i, job in enumerate(instance.jobs):
        time[i] = known.get(job, 0.0)
        if job in last and last[job][1] > 0:
            time[i] += max(last[job][0] - steps[i], 0.0) / last[job][1]
    return time


def _where_it_stops(program: Program, work: Floats, late: Floats, budget: int) -> Floats | None:
    """Smallest ``r`` with ``late + work * p <= r``, and ``p`` at least 1 / throughput: a cone for each job, as the artifact writes it."""
    jobs, columns = program.size, len(program.row)
    limits = sparse.csr_array(sparse.csc_array((program.value, program.index, program.start), shape=(len(program.bound), columns)))
    kept = np.concatenate((np.arange(0, 2 * jobs, 2), np.arange(2 * jobs, len(program.bound))))
    speeds = -limits[1 : 2 * jobs : 2]
    blocks: list[list[Any]] = [  # shares, p, r
        [-sparse.eye_array(columns), None, None],
        [limits[kept], None, None],
        [None, sparse.diags_array(work), np.full((jobs, 1), -1.0)],
        [sparse.kron(speeds, [[-1], [-1], [0]]), sparse.kron(sparse.eye_array(jobs), [[-1], [1], [0]]), None],  # (y + p, y - p, 2)
    ]
    bounds = [np.zeros(columns), program.bound[kept], -late, np.tile([0.0, 0.0, 2.0], jobs)]
    if jobs == 1:  # then the ratio itself is the goal
        del blocks[2], bounds[2]
        blocks = [row[:2] for row in blocks]
    matrix = sparse.csc_array(sparse.block_array(blocks))
    goal = np.zeros(matrix.shape[1])
    goal[-1] = work[0] if jobs == 1 else 1.0
    found = stopping_point(goal, matrix, np.concatenate(bounds), jobs, budget)
    return None if found is None else found[:columns]


def _divided(instance: Instance) -> Instance:
    pairs = instance.pairs
    if pairs is not None:
        pairs = Pairs(pairs.members, pairs.throughput / instance.weight[pairs.members][:, :, None])
    return replace(instance, throughput=instance.throughput / instance.weight[:, None], pairs=pairs)


# Makespan: finish all present jobs as early as possible (Gavel, OSDI 2020, section 4.2).
#
# Every job needs ``steps / horizon`` throughput, so the smallest horizon is the inverse of a max-min level: one linear
# program. The artifact searches the horizon by bisection and takes whatever answer its last feasible program gave, within
# 5 % of the optimum. That program has no goal, so what its solver happens to stop at decides how the slack is shared out;
# ``bisection=True`` walks the same search and stops where the artifact's solver does (with pairs: in the centre of the last feasible set).

SLACK = 1.05  # the artifact stops when the upper end is within 5 % of the lower


def makespan(instance: Instance, solving: Solving = DEFAULT, *, bisection: bool = False) -> Allocation:
    """Shares that finish the last job first; the objective is the horizon in seconds."""
    (steps,) = instance.needing("steps")
    if bisection:
        solving = replace(solving, by_kinds=False)  # where that solver stops depends on how many rows there are
    kinds = solving.kinds(instance, steps)
    program = solving.constraints(instance, kinds)
    needed = steps[kinds.first]
    point = best_level(program, needed, None, solving)
    horizon = 1.0 / point.level if point.level > 0 else float("inf")
    if bisection and point.solved and np.isfinite(horizon) and len(program.row):
        horizon = last_feasible_probe(horizon)
        found = None if len(kinds.pair_first) else feasible_point(*_within(program, needed / horizon), solving.budget)
        if found is None:
            point = maximise_gain(program, np.zeros(len(program.row)), needed / horizon, budget=solving.budget)
        else:
            point = replace(point, x=found)
    return conclude(instance, program, point, horizon, solving)


def _within(program: Program, floor: Floats) -> tuple[sparse.csc_array, Floats]:
    """Shares that are not negative, keep every limit and give each job its floor, as ``G x <= h``."""
    columns, bound = len(program.row), program.bound.copy()
    bound[1 : 2 * program.size : 2] = -floor
    limits = sparse.csc_array((program.value, program.index, program.start), shape=(len(bound), columns))
    return sparse.csc_array(sparse.vstack([-sparse.eye_array(columns), limits])), np.concatenate((np.zeros(columns), bound))


def last_feasible_probe(shortest: float, low: float = 100.0, high: float = 1e6) -> float:
    """The last horizon that the artifact's search finds feasible when the true optimum is ``shortest``."""
    while True:
        found, floor, top = None, low, high
        while top > SLACK * floor:
            middle = (floor + top) / 2.0
            if middle >= shortest:
                found = top = middle
            else:
                floor = middle
        if found is not None:
            return found
        low, high = high, 10.0 * high


REMAINING = frozenset({"remaining"})


@dataclass(frozen=True)
class FinishTimeFairness(OptimisedPolicy):
    """The largest ratio of finish time to that on a part of one's own is as small as possible; one speed per job is known."""

    name: ClassVar[str] = "gavel.finish_time_fairness"
    paper: ClassVar[str] = "Gavel (OSDI 2020); objective of Themis (Mahajan et al., NSDI 2020)"
    aware: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = REMAINING

    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        by_weight, stops = self.is_artifact and self.packs, self.is_artifact and self.tie == "auto"
        after = FairnessMemory(isolated_time=[], last=[])

        def solve(part: Instance) -> Allocation:
            allocation, kept = finish_time_fairness(part, memory, self.solving, by_weight=by_weight, stops=stops)
            after["isolated_time"] += kept["isolated_time"]
            after["last"] += kept["last"]
            return allocation

        return self.in_parts(self.one_speed(instance), solve), after


@dataclass(frozen=True)
class FinishTimeFairnessPerf(FinishTimeFairness):
    """Finish-time fairness with the speeds on every type."""

    name: ClassVar[str] = "gavel.finish_time_fairness_perf"
    aware: ClassVar[bool] = True


@dataclass(frozen=True)
class FinishTimeFairnessPacked(PackedOptimisedPolicy, FinishTimeFairnessPerf):
    """Finish-time fairness, and two jobs may share devices."""

    name: ClassVar[str] = "gavel.finish_time_fairness_packed"
    needs: ClassVar[frozenset[str]] = REMAINING | PackedOptimisedPolicy.needs


@dataclass(frozen=True)
class MinTotalDuration(OptimisedPolicy):
    """Makespan: all present jobs finish as early as possible; one speed per job is known."""

    name: ClassVar[str] = "gavel.min_total_duration"
    aware: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = REMAINING

    def solve(self, instance: Instance) -> Allocation:
        return makespan(self.one_speed(instance), self.solving, bisection=self.is_artifact)


@dataclass(frozen=True)
class MinTotalDurationPerf(MinTotalDuration):
    """Makespan with the speeds on every type."""

    name: ClassVar[str] = "gavel.min_total_duration_perf"
    aware: ClassVar[bool] = True


@dataclass(frozen=True)
class MinTotalDurationPacked(PackedOptimisedPolicy, MinTotalDurationPerf):
    """Makespan, and two jobs may share devices."""

    name: ClassVar[str] = "gavel.min_total_duration_packed"
    needs: ClassVar[frozenset[str]] = REMAINING | PackedOptimisedPolicy.needs
