"""Users' requests about submitted jobs: cancel, hold, release, requeue, resize, save; and ends that are decided outside."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.errors import RefusedError, UsageError
from gantline.core.inputs import Action, JobRequest
from gantline.core.options import Option
from gantline.core.phases import RESIZING, RUNNING, STARTING, Phase
from gantline.core.plan import Assignment, Assignments
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.advance import admit
from gantline.engine.commit.commit import commit_assignments
from gantline.engine.gates.quotas import QuotaGate
from gantline.engine.grants import Grants
from gantline.engine.lists import RowCount
from gantline.engine.option_rows import larger_way, size_of, sizes_in_steps, smaller_way
from gantline.engine.policy_failures import Incident
from gantline.engine.ranks import leave
from gantline.engine.state import State
from gantline.engine.submissions import JobRows, RejectedError

#: the phase in which a job is put that leaves the active ones, and the reason that it has there
_PUT_OUT = {
    Action.CANCEL: (Phase.CANCELLED, Reason.CANCELLED),
    Action.HOLD: (Phase.HELD, Reason.HELD),
    Action.FAIL: (Phase.FAILED, Reason.LIMIT),
    Action.FINISH: (Phase.COMPLETED, Reason.LOSS),
}


class JobRequests:
    """Carries requests out."""

    def __init__(self, grants: Grants, quotas: QuotaGate, rows: JobRows) -> None:
        self.state, self.grants, self.quotas, self.rows = grants.state, grants, quotas, rows

    def check(self, value: JobRequest) -> None:
        """Raise what `apply` would, and change nothing."""
        for name in value.jobs:
            row, phase = self.rows.known(name, value.action.value)
            if value.action is Action.RESIZE and not phase.terminal:
                sizes_and_options(self.state.tables, self.quotas, row, value)
            if value.action is Action.REQUEUE:
                self._may_requeue(phase, name)

    def apply(self, name: str, value: JobRequest) -> bool:
        """What is asked of one job; whether a policy could see a difference."""
        row, phase = self.rows.known(name, value.action.value)
        if value.action is Action.RESIZE:
            return self._resize(row, phase, value)
        if value.action is Action.RELEASE:
            return self._release(row, phase)
        if value.action is Action.REQUEUE:
            return self._requeue(row, phase, name)
        if phase.terminal:
            return False
        if value.action is Action.SAVE:
            if phase in (Phase.STARTING, Phase.RUNNING, Phase.RESIZING):
                self.state.asked_saves[row] = self.state.asked_saves.get(row, 0) + 1
            return False
        if value.action is Action.FINISH and not phase.active:
            return False  # it was put on hold at the same instant, and stays so
        kept, reason = _PUT_OUT[value.action]
        self.state.withheld[row] = kept
        self._put_out(row, kept, reason)
        return True

    def _put_out(self, row: int, kept: Phase, reason: Reason) -> None:
        """The row leaves the active ones; if it runs, its work is saved first."""
        state = self.state
        if int(self.state.tables.jobs.phase[row]) in (Phase.STARTING, Phase.RUNNING, Phase.RESIZING):
            self._stop(row, reason)
        if Phase(int(self.state.tables.jobs.phase[row])).active:
            leave(state.lists, row)
        self.state.tables.jobs.phase[row], self.state.tables.jobs.reason[row] = int(kept), int(reason)
        if kept is Phase.COMPLETED:
            jobs = state.tables.jobs
            jobs.finish[row], jobs.work[row] = state.now, jobs.done[row]  # what it has done is all that it had to do
        state.rebuild()

    def _stop(self, row: int, reason: Reason) -> None:
        """The row gives up what it holds on request, which is no preemption."""
        self.grants.stop(row, reason)
        self.state.tables.jobs.preemptions[row] -= 1
        self.grants.refresh()

    def keep_out(self) -> None:
        """A row that was held or cancelled before its admission stays out."""
        jobs = self.state.tables.jobs
        for row, kept in list(self.state.withheld.items()):
            if int(jobs.phase[row]) not in (Phase.FUTURE, kept):
                self._put_out(row, kept, next(reason for phase, reason in _PUT_OUT.values() if phase is kept))
            if kept.terminal and row < self.state.lists.number[RowCount.NEXT]:
                del self.state.withheld[row]  # it has arrived: nothing lets it in by itself any more

    def _release(self, row: int, phase: Phase) -> bool:
        if self.state.withheld.get(row) is not Phase.HELD:
            return False
        del self.state.withheld[row]
        if phase is Phase.HELD:
            self._let_in(row, Reason.ARRIVED)
        return True

    def _requeue(self, row: int, phase: Phase, name: str) -> bool:
        if phase in (Phase.FAILED, Phase.CANCELLED):
            self.state.withheld.pop(row, None)
            self._let_in(row, Reason.REQUEUED)
            return True
        if phase in (Phase.STARTING, Phase.RUNNING, Phase.RESIZING):
            self._stop(row, Reason.REQUEUED)
            self.state.rebuild()
            return True
        self._may_requeue(phase, name)
        return False

    def _may_requeue(self, phase: Phase, name: str) -> None:
        if phase in (Phase.COMPLETED, Phase.REJECTED):
            raise RefusedError(f"job '{name}' is {phase.name.lower()}", where="requeue", fix="submit it again under another id")

    def _let_in(self, row: int, reason: Reason) -> None:
        state, t = self.state, self.state.tables
        admit(t.F, t.I, state.lists, row, state.now)
        t.jobs.reason[row] = int(reason)
        t.jobs.since[row] = state.now
        state.rebuild()

    def _resize(self, row: int, phase: Phase, value: JobRequest) -> bool:
        """Change the number of devices that the job asks for; if it holds more or fewer than that allows, it changes at once."""
        t = self.state.tables
        if phase.terminal:
            return False
        least, most, options = sizes_and_options(self.state.tables, self.quotas, row, value)
        t.jobs.option_first[row], t.jobs.option_count[row] = len(t.options), len(options)
        for option in options:
            t.options.append(option)
        t.jobs.gpus[row], t.jobs.min_gpus[row], t.jobs.max_gpus[row] = value.gpus, least, most
        t.jobs.smallest[row] = min(option.gpus for option in options)
        self.grants.options.forget(row)
        self.state.resized.add(row)
        self.state.make_room(row)
        self.state.rebuild()
        if not fit_to_bounds(self.grants, self.quotas, row):
            self.state.to_fit.add(row)
        return True

    def fit(self) -> None:
        """Gangs that could not change their size when they were asked to do so now, if they can."""
        self.state.to_fit = {row for row in self.state.to_fit if not fit_to_bounds(self.grants, self.quotas, row)}


# A request for another size acts at once, whatever the policy: a gang outside its new bounds changes in place, or
# stops and waits anew.
#
# A policy that remembers the old size, and plans with it, gets the nearest one within the new bounds instead
# (`within_bounds`).
#
# A gang that is too large gives devices up. One that is too small gets more, if they are free and its queue may hold
# them; else it is stopped (its work is saved first, where it can save) and waits for its new size like any other job.
# How a program gets from one size to the other is the executor's: in place where it can, by a restart where it cannot.


def fit_to_bounds(grants: Grants, quotas: QuotaGate, row: int) -> bool:
    """Bring a gang within its bounds; False: not now, because a change of it is under way or it is locked."""
    state, t = grants.state, grants.state.tables
    jobs = t.jobs
    if int(jobs.phase[row]) not in (STARTING, RUNNING, RESIZING) or _fits(grants, row):
        return True
    if jobs.phase[row] == RESIZING or jobs.locked[row] != 0:
        return False
    held, kind = int(jobs.held[row]), int(t.options.type[jobs.option[row]])
    size = _nearest(grants, row, held, kind)
    free = int(t.nodes.free[t.nodes.type == kind].sum())
    if size and row not in grants.by_row and (size < held or (size - held <= free and quotas.may_grow(row, size - held))):
        state.log.reserve(8, 4 * t.D.shape[1] + 8)
        others = state.rows[state.rows != row].copy()
        table = Assignments([0], gpus=[size], type=[kind])

        commit_assignments(grants, np.array([row], dtype=np.int64), table, keeps=others)
    if not _fits(grants, row):
        state.log.reserve(8, 4 * t.D.shape[1] + 8)
        grants.stop(row, Reason.RESIZED)
        jobs.preemptions[row] -= 1  # its owner wanted it
        grants.refresh()
        state.rebuild()
    return True


def sizes_and_options(t: Tables, quotas: QuotaGate, row: int, value: JobRequest) -> tuple[int, int, list[Option]]:
    """The least and the most that a job would take if it were resized so, and the options it would then have."""
    least, most = value.min_gpus or value.gpus, value.max_gpus or value.gpus
    if not 0 < least <= value.gpus <= most:
        raise UsageError(f"{least} to {most} GPUs around {value.gpus}", where="resize", fix="give 1 <= min <= gpus <= max")
    old = [t.options[k] for k in range(int(t.jobs.option_first[row]), int(t.jobs.option_first[row] + t.jobs.option_count[row]))]
    was, rest = int(t.jobs.gpus[row]), [option for option in old if option.gpus == 0]
    kinds = list(dict.fromkeys(option.type for option in old if option.gpus > 0))
    sizes = sizes_in_steps({option.gpus for option in old if option.gpus > 0}, least, value.gpus, most)

    def resized(kind: int, size: int) -> Option:
        like = next(option for option in old if option.type == kind and option.gpus > 0)
        rate = like.rate * (size / max(was, 1) if t.performance is None else 1.0)
        return Option(kind, size, rate, rate, like.cpus, like.memory, int(like.nodes == 1), like.storage)

    options = [*(resized(kind, size) for kind in kinds for size in sizes), *rest]
    least, most = (min(sizes), max(sizes)) if len(sizes) > 1 else (least, most)
    if not any(option.gpus <= t.cluster.gpus_of(t.cluster.types[option.type]) for option in options):
        raise RejectedError(Reason.TOO_LARGE, value.job, "ask for less, or let nodes join first")
    quotas.check_size(value.job, t.queues[int(t.jobs.queue[row])], 0 if rest else least)
    return least, most, options


def within_bounds(t: Tables, rows: Ints, table: Assignments, resized: Set[int]) -> Assignments:
    """The plan with sizes within their bounds for jobs that were resized."""
    places = [place for place, row in enumerate(rows[table.job].tolist()) if row in resized]
    other: dict[int, Assignment] = {}
    for place in places:
        row, item = int(rows[table.job[place]]), table[place]
        size, least, most = size_of(t, row, item), int(t.jobs.min_gpus[row]), int(t.jobs.max_gpus[row])
        found = smaller_way(t, row, item, most) if size > most else larger_way(t, row, item, least) if 0 < size < least else None
        if found is not None:
            other[place] = found
    return Assignments.of([other.get(place, item) for place, item in enumerate(table)]) if other else table


def _fits(grants: Grants, row: int) -> bool:
    jobs = grants.state.tables.jobs
    if jobs.held[row] == 0:  # it runs without devices
        return bool(jobs.smallest[row] == 0)
    return bool(jobs.min_gpus[row] <= jobs.held[row] <= jobs.max_gpus[row])


def _nearest(grants: Grants, row: int, held: int, kind: int) -> int:
    """The size within the bounds that changes least; of a job with sizes of its own on this type, one of those. Zero: none."""
    t = grants.state.tables
    first, count = int(t.jobs.option_first[row]), int(t.jobs.option_count[row])
    own = {option.gpus for option in (t.options[k] for k in range(first, first + count)) if option.type == kind and option.gpus > 0}
    least, most = int(t.jobs.min_gpus[row]), int(t.jobs.max_gpus[row])
    if len(own) <= 1:
        return min(max(held, least), most) if own else 0
    return min((size for size in own if least <= size <= most), key=lambda size: (abs(size - held), size), default=0)


# Runs that reach their limit before their start is over: the plan gives them less time than a start takes, and they do
# no work.
#
# The first such run of a job is reported. After a few in a row, between which the job has not worked either, the job
# ends as one that has reached its limit: no plan of this kind would ever let it work.

MOST = 3  # such runs in a row


class FutileRuns:
    """Counts them, job by job."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._count: dict[int, tuple[int, float]] = {}  # row -> such runs in a row, and what it had attained by then
        self._ended: list[tuple[int, float, float]] = []  # rows whose run has just ended so, their limit, and what their start takes

    def note(self, row: int) -> None:
        """A run ends at its limit, now: was its start still going on?"""
        F, jobs = self.state.tables.F, self.state.tables.jobs
        if jobs.since[row] >= self.state.now - 1e-9:
            limit, takes = (float(F[line, row] - jobs.last_start[row]) for line in (Job.LIMIT_END, Job.SINCE))
            self._ended.append((row, limit, takes))

    def report(self, requests: JobRequests) -> list[Incident]:
        """What is to be said of the runs that were noted; jobs that had too many of them end."""
        found: list[Incident] = []
        t, now = self.state.tables, self.state.now
        for row, limit, takes in self._ended:
            count, attained = self._count.get(row, (0, 0.0))
            count = count + 1 if attained == t.jobs.service[row] else 1
            self._count[row] = count, float(t.jobs.service[row])
            why = f"the plan lets job '{t.ids[row]}' run for {limit:g} s, its limit, and its start alone takes {takes:g} s"
            if count == 1:
                found.append(Incident(now, self.state.decision, why))
            elif count >= MOST:
                del self._count[row]
                requests.apply(t.ids[row], JobRequest(now, Action.FAIL, t.ids[row]))
                found.append(Incident(now, self.state.decision, f"{why}: the job ends after {count} runs without work"))
        self._ended.clear()
        return found
