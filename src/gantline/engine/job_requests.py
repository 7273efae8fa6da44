"""Users' requests about submitted jobs: cancel, hold, release, requeue, resize, save; and ends that are decided outside."""

from __future__ import annotations

from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.inputs import Action, JobRequest
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.engine.advance import admit
from gantline.engine.grants import Grants
from gantline.engine.job_rows import JobRows
from gantline.engine.lists import RowCount
from gantline.engine.quota_gate import QuotaGate
from gantline.engine.ranks import leave
from gantline.engine.resizing import fit_to_bounds, sizes_and_options

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
        state, I = self.state, self.state.tables.I
        if int(I[Job.PHASE, row]) in (Phase.STARTING, Phase.RUNNING, Phase.RESIZING):
            self._stop(row, reason)
        if Phase(int(I[Job.PHASE, row])).active:
            leave(state.lists, row)
        I[Job.PHASE, row], I[Job.REASON, row] = int(kept), int(reason)
        if kept is Phase.COMPLETED:
            F = state.tables.F
            F[Job.FINISH, row], F[Job.WORK, row] = state.now, F[Job.DONE, row]  # what it has done is all that it had to do
        state.rebuild()

    def _stop(self, row: int, reason: Reason) -> None:
        """The row gives up what it holds on request, which is no preemption."""
        self.grants.stop(row, reason)
        self.state.tables.I[Job.PREEMPTIONS, row] -= 1
        self.grants.refresh()

    def keep_out(self) -> None:
        """A row that was held or cancelled before its admission stays out."""
        I = self.state.tables.I
        for row, kept in list(self.state.withheld.items()):
            if int(I[Job.PHASE, row]) not in (Phase.FUTURE, kept):
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
        t.I[Job.REASON, row] = int(reason)
        t.F[Job.SINCE, row] = state.now
        state.rebuild()

    def _resize(self, row: int, phase: Phase, value: JobRequest) -> bool:
        """Change the number of devices that the job asks for; if it holds more or fewer than that allows, it changes at once."""
        t = self.state.tables
        if phase.terminal:
            return False
        least, most, options = sizes_and_options(self.state.tables, self.quotas, row, value)
        t.I[Job.OPTION_FIRST, row], t.I[Job.OPTION_COUNT, row] = len(t.options), len(options)
        for option in options:
            t.options.append(option)
        t.I[Job.GPUS, row], t.I[Job.MIN_GPUS, row], t.I[Job.MAX_GPUS, row] = value.gpus, least, most
        t.I[Job.SMALLEST, row] = min(option.gpus for option in options)
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
