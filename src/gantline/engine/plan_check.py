"""Refuses invalid plans before anything is changed."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from gantline.core import memory as memories
from gantline.core.errors import GantlineError, near
from gantline.core.plan import PURPOSES, Assignments, Plan
from gantline.core.snapshot import Snapshot

FEW = 1024  # up to this many rows, reservations or notes are always accepted


class InfeasiblePlanError(GantlineError):
    """The plan asks for something impossible."""


def check_plan(snapshot: Snapshot, plan: Plan) -> None:
    """Whether a plan is about the jobs and nodes of its snapshot, and of a plausible size."""
    if not isinstance(plan, Plan):
        raise InfeasiblePlanError(f"the policy answered with a {type(plan).__name__}", fix="return a gantline Plan")
    n = len(snapshot.jobs)
    if plan.ranking is not None:
        key = plan.ranking.key
        if key.shape != (n,):
            raise InfeasiblePlanError(f"the ranking has shape {key.shape} for {n} jobs", fix="one key per job of the snapshot")
        if np.isnan(key).any():
            raise InfeasiblePlanError("the ranking has a key that is not a number", fix="use +inf for 'not now'")
        if not isinstance(plan.ranking.placement, str | None):
            what = f"the ranking's placement is a {type(plan.ranking.placement).__name__}"
            raise InfeasiblePlanError(what, fix="the name of a placement rule, or None for the run's")
    if plan.assignments is not None:
        _check_assignments(plan.assignments, n, len(snapshot.cluster.types))
    if plan.refusals or plan.reservations or plan.release:
        _check_rest(plan, n, snapshot.cluster.nodes)
    until = plan.valid_until
    if until is not None and (not isinstance(until, Real) or math.isnan(until)):
        raise InfeasiblePlanError(f"valid_until is {until!r}", fix="a time, or None for 'ask again next round'")
    if len(plan.notes) > FEW:
        raise InfeasiblePlanError(f"the plan has {len(plan.notes)} notes", fix="say what people should know in a few")
    if plan.memory is not None:
        memories.check(plan.memory)


def _check_assignments(table: Assignments, jobs: int, types: int) -> None:
    job = table.job
    if len(job) and (job.min() < 0 or job.max() >= jobs):
        wrong = int(job.max()) if job.max() >= jobs else int(job.min())
        raise InfeasiblePlanError(f"an assignment names job {wrong} of {jobs}", fix="use positions in snapshot.jobs")
    if table.has("purpose"):
        for purpose in dict.fromkeys(table.entries("purpose")):
            if purpose not in PURPOSES:
                raise InfeasiblePlanError(f"an assignment has the purpose {purpose!r}", fix=near(str(purpose), PURPOSES))
    if table.has("span") and len(job) and table.column("span").min() < 0:
        raise InfeasiblePlanError(f"a gang is to span {table.column('span').min()} nodes", fix="a number of nodes, or 0 for any")
    if not table.has("share"):
        if len(job) and np.bincount(job).max() > 1:
            raise InfeasiblePlanError("a job is assigned twice", fix="one assignment per job")
    elif len(job) > max(FEW, 4 * jobs * jobs * max(types, 1)):  # more than every pair of jobs on every type
        raise InfeasiblePlanError(f"{len(job)} assignments for {jobs} jobs", fix="at most one per job or pair of jobs and device type")


def _check_rest(plan: Plan, jobs: int, nodes: int) -> None:
    """Refusals, reservations and releases name what exists, each once, and no job is both refused and given something."""
    refused = [one.job for one in plan.refusals]
    for job in [*refused, *(one.job for one in plan.reservations if one.job != -1)]:
        if not 0 <= job < jobs:
            raise InfeasiblePlanError(f"a refusal or reservation names job {job} of {jobs}", fix="use positions in snapshot.jobs")
    for node in plan.release:
        if not 0 <= node < nodes:
            raise InfeasiblePlanError(f"node {node} of {nodes} is to be released", fix="nodes are counted from 0")
    if len(refused) > jobs or len(plan.release) > nodes:
        raise InfeasiblePlanError("a job is refused or a node released more than once", fix="name each once")
    if len(plan.reservations) > FEW + 64 * jobs:
        raise InfeasiblePlanError(f"{len(plan.reservations)} reservations for {jobs} jobs", fix="keep those that matter now")
    if plan.assignments is not None and not set(refused).isdisjoint(plan.assignments.job.tolist()):
        raise InfeasiblePlanError("a job is both refused and assigned something", fix="do one of the two")
