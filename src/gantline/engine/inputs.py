"""What enters from outside changes the tables here, and nowhere else: jobs, what people want of them, nodes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from gantline.core import columns as c
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.inputs import Action, Input, JobRequest, Report, Reserve, SetJob, SetQueue, Submit, Unreserve, Use
from gantline.core.job_json import NAMES, decode_job, default_options, fill_metrics
from gantline.core.json_reader import Reader
from gantline.core.node_events import NodeEvent
from gantline.core.option_json import decode_option
from gantline.core.options import Option
from gantline.core.phases import Phase
from gantline.core.queues import Queue
from gantline.core.reasons import Reason, sentence
from gantline.core.tables import Tables
from gantline.engine import lists as ls
from gantline.engine.advance import admit
from gantline.engine.grants import Grants
from gantline.engine.job_changes import code_of, set_job
from gantline.engine.node_changes import drain_node, join_node, lose_node, return_node
from gantline.engine.option_rows import sizes_in_steps
from gantline.engine.quota_gate import QuotaGate
from gantline.engine.ranks import leave
from gantline.engine.resizing import fit_to_bounds
from gantline.engine.side_demands import check_side_demands
from gantline.engine.state import State

if TYPE_CHECKING:
    from gantline.engine.window_gate import WindowGate

#: what a submitted job may say: all that a snapshot says of one that waits and has done nothing yet
SUBMITTED = frozenset({"id", "options", "metrics", *NAMES, "priority", "weight", "deadline", "estimate", "checkpoint"})
SUBMITTED |= {"gpus", "min_gpus", "max_gpus", "reserved", "consolidate", "epoch"}
_LISTS = {"user": "users", "queue": "queues", "app": "apps", "model": "models"}
#: what becomes of a job that somebody puts out, and why it is there
_PUT_OUT = {
    Action.CANCEL: (Phase.CANCELLED, Reason.CANCELLED),
    Action.HOLD: (Phase.HELD, Reason.HELD),
    Action.FAIL: (Phase.FAILED, Reason.LIMIT),
    Action.FINISH: (Phase.COMPLETED, Reason.LOSS),
}


class RejectedError(RefusedError):
    """A job that can never run here is refused when it is submitted; `reason` is the code from the closed list."""

    def __init__(self, reason: Reason, job: str, fix: str) -> None:
        super().__init__(f"job '{job}' {sentence(reason)}", where="submit", fix=fix)
        self.reason = reason


class Inputs:
    """Applies inputs, one after the other; whether a policy could see a difference comes back."""

    def __init__(self, state: State, grants: Grants, quotas: QuotaGate) -> None:
        self.state, self.grants, self.quotas = state, grants, quotas
        self.received: Callable[[Input], None] | None = None  # told every input: the journal
        self.absorb: Callable[[Report], bool] | None = None  # set by who knows what reports mean
        self.use: Callable[[Use], None] | None = None  # set by who can find policies
        self.resized: set[int] = set()  # rows whose size somebody has changed: plans with another one are brought to it
        self.to_fit: set[int] = set()  # rows that are to change their size as soon as they can
        self._rows: dict[str, int] = {}
        self._counted = 0  # rows that are in it

    @cached_property
    def windows(self) -> WindowGate:
        """What applies windows; few runs have any."""
        from gantline.engine.window_gate import WindowGate

        return WindowGate(self.state, self.grants, self.quotas)

    def apply(self, value: Input) -> bool:
        """Take in one input, now."""
        if isinstance(value, Report):
            changed = self.absorb is not None and self.absorb(value)
        elif isinstance(value, Submit):
            changed = self._submit(value)
        elif isinstance(value, JobRequest):
            changed = sum(self._request(name, value) for name in value.jobs) > 0
        elif isinstance(value, SetJob):
            row, phase = self._known(value.job, "set")
            changed = not phase.terminal and set_job(self.state.tables, row, value)
        elif isinstance(value, Use):
            changed = self.use is not None
            if self.use is not None:
                self.use(value)
        elif isinstance(value, SetQueue):
            changed = self._set_queue(value)
        elif isinstance(value, Reserve | Unreserve):
            self.windows.apply(value)
            changed = True
        else:
            changed = self._change_node(value)
        if self.received is not None:
            self.received(value)
        return changed

    def check(self, value: Input) -> None:
        """Raise what `apply` would, and change nothing."""
        if isinstance(value, Submit):
            reader, _, own = self._asked(value)
            blank = Tables.empty(self.state.tables.cluster, 1)
            for option in own:
                blank.options.append(option)
            decode_job(reader, blank, 0, value.time, own, 0)
        elif isinstance(value, JobRequest):
            for name in value.jobs:
                row, phase = self._known(name, value.action.value)
                if value.action is Action.RESIZE and not phase.terminal:
                    self._resized(row, value)
                if value.action is Action.REQUEUE:
                    self._may_requeue(phase, name)
        elif isinstance(value, SetJob):
            row, _ = self._known(value.job, "set")
            if value.queue is not None:
                self._within_quota(value.job, value.queue, int(self.state.tables.I[c.MIN_GPUS, row] or self.state.tables.I[c.GPUS, row]))
        elif isinstance(value, SetQueue):
            Queue(value.name, value.weight, value.quota, value.borrow)
        elif isinstance(value, Reserve | Unreserve):
            self.windows.check(value)
        elif not isinstance(value, Report | Use) and value.kind != "join" and value.device(self.state.tables.cluster) is None:
            value.find(self.state.tables.cluster)

    def _set_queue(self, value: SetQueue) -> bool:
        tree = self.state.tables.queue_tree
        if value.drop:
            tree.pop(value.name, None)
        else:
            tree[value.name] = Queue(value.name, value.weight, value.quota, value.borrow)
        return True

    # --- jobs -----------------------------------------------------------------------------------------------------------
    def _submit(self, value: Submit) -> bool:
        """A new row for each job, which arrives at the next look; one that can never run gets none."""
        state, t = self.state, self.state.tables
        reader, names, own = self._asked(value)
        row, first = len(t.ids), len(t.options)
        for name in names:
            self._rows[name] = t.add_row(name)
            for option in own:
                t.options.append(option)
        for key, column in NAMES.items():
            t.I[column, row] = code_of(getattr(t, _LISTS[key]), reader.text(key, ""))
        decode_job(reader, t, row, value.time, own, first)
        fill_metrics(reader, t, row)
        if t.I[c.CONSOLIDATE, row]:
            t.I[c.CONSOLIDATE, row] = c.ASKED_TOGETHER
        t.F[c.ARRIVAL, row] = t.F[c.SINCE, row] = value.time
        t.I[c.PHASE, row] = int(Phase.FUTURE)
        t.F[c.WORK, row] = float("inf") if value.work is None else value.work
        if value.work is not None and "estimate" not in reader:
            t.F[c.ESTIMATE, row] = value.work
        if value.work is None and "estimate" not in reader:
            t.unestimated.update(range(row, row + len(names)))
        t.repeat(row, len(names) - 1)
        state.judge_models(row)
        state.make_room(row)
        return True

    def _asked(self, value: Submit) -> tuple[Reader, tuple[str, ...], list[Option]]:
        """What is submitted, the ids, and the ways in which each may run."""
        state, t = self.state, self.state.tables
        reader = Reader({"id": value.ids[0], **value.job} if value.ids else value.job, "job")
        reader.only(sorted(SUBMITTED))
        name, gpus = reader.text("id"), reader.whole("gpus", 1)
        names = value.ids or (name,)
        twice = next((one for one in names if self._is_there(one)), None)
        if twice is not None or len(set(names)) < len(names):
            raise UsageError(f"there is a job '{twice or name}' already", where="submit", fix="give every job its own id")
        to_come = t.F[c.ARRIVAL, state.lists.number[ls.NEXT] : len(t.ids)]
        if (to_come > value.time).any():
            raise RefusedError("jobs of a trace are still to come", where="submit", fix="submit when the last of them has arrived")
        own = self._options(reader, name, gpus)
        if state.placement.picks and any(option.cpus > 0 or option.memory > 0 for option in own):
            what = f"placement '{state.placement.name}' picks devices and does not count CPUs and memory, which job '{name}' asks for"
            raise RefusedError(what, where="submit", fix="leave cpus and memory out, or use another placement")
        least = reader.whole("min_gpus", 0) or min(option.gpus for option in own)
        self._within_quota(name, reader.text("queue", ""), least)
        return reader, names, own

    def _within_quota(self, name: str, queue: str, size: int) -> None:
        """A job that its queue could never hold is refused; one whose queue's quota shrinks later waits, and says why."""
        if not self.quotas.active:
            return
        most, whose = self.quotas.most(queue)
        if size > most:
            told = f"job '{name}' {self.quotas.too_much(size, most, whose)}"
            raise RefusedError(
                told, where="submit", fix=f"ask for less, or raise the quota of queue '{whose}'" if whose else "ask for less"
            )

    def _options(self, reader: Reader, name: str, gpus: int) -> list[Option]:
        """The ways in which it may run; it is rejected where none can ever be."""
        cluster = self.state.tables.cluster
        for item, path in reader.items("options"):
            kind = Reader(item, path).text("type", cluster.types[0] if cluster.types else "")
            if kind not in cluster.types:
                raise RejectedError(Reason.NO_SUCH_TYPE, name, near(kind, cluster.types))
        own = [decode_option(Reader(item, path), cluster.types) for item, path in reader.items("options")]
        own = own or default_options(self.state.tables, gpus)
        if not any(option.gpus <= cluster.gpus_of(cluster.types[option.type]) for option in own):
            raise RejectedError(Reason.TOO_LARGE, name, "ask for less, or let nodes join first")
        check_side_demands(cluster, name, own)
        return own

    def _is_there(self, name: str) -> bool:
        """Whether a job of that id is there; one that has ended may come back under its id."""
        row = self.row_of(name)
        return row is not None and not Phase(int(self.state.tables.I[c.PHASE, row])).terminal

    def row_of(self, name: str) -> int | None:
        """The row of the job of that id."""
        ids = self.state.tables.ids
        for row in range(self._counted, len(ids)):  # the newest counts: one that had ended may be there again
            if ids[row]:  # else it ended before the checkpoint we began with
                self._rows[ids[row]] = row
        self._counted = len(ids)
        return self._rows.get(name)

    def _known(self, name: str, where: str) -> tuple[int, Phase]:
        row = self.row_of(name)
        if row is None:
            raise NotFoundError(f"no job '{name}'", where=where, fix=near(name, self._rows))
        return row, Phase(int(self.state.tables.I[c.PHASE, row]))

    def _request(self, name: str, value: JobRequest) -> bool:
        row, phase = self._known(name, value.action.value)
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
        if int(I[c.PHASE, row]) in (Phase.STARTING, Phase.RUNNING, Phase.RESIZING):
            self._stop(row, reason)
        if Phase(int(I[c.PHASE, row])).active:
            leave(state.lists, row)
        I[c.PHASE, row], I[c.REASON, row] = int(kept), int(reason)
        if kept is Phase.COMPLETED:
            F = state.tables.F
            F[c.FINISH, row], F[c.WORK, row] = state.now, F[c.DONE, row]  # what it has done is all that it had to do
        state.rebuild()

    def _stop(self, row: int, reason: Reason) -> None:
        """It gives up what it holds because somebody wants it to, which is no preemption."""
        self.grants.stop(row, reason)
        self.state.tables.I[c.PREEMPTIONS, row] -= 1
        self.grants.refresh()

    def keep_out(self) -> None:
        """Whoever was held or cancelled before he was let in is kept out still."""
        I = self.state.tables.I
        for row, kept in list(self.state.withheld.items()):
            if int(I[c.PHASE, row]) not in (Phase.FUTURE, kept):
                self._put_out(row, kept, next(reason for phase, reason in _PUT_OUT.values() if phase is kept))
            if kept.terminal and row < self.state.lists.number[ls.NEXT]:
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
        t.I[c.REASON, row] = int(reason)
        t.F[c.SINCE, row] = state.now
        state.rebuild()

    def _resize(self, row: int, phase: Phase, value: JobRequest) -> bool:
        """It asks for another number of devices from now on; if what it holds is outside that, it changes at once."""
        t = self.state.tables
        if phase.terminal:
            return False
        least, most, fresh, rest = self._resized(row, value)
        t.I[c.OPTION_FIRST, row], t.I[c.OPTION_COUNT, row] = len(t.options), len(fresh) + len(rest)
        for option in (*fresh, *rest):
            t.options.append(option)
        t.I[c.GPUS, row], t.I[c.MIN_GPUS, row], t.I[c.MAX_GPUS, row] = value.gpus, least, most
        t.I[c.SMALLEST, row] = min(option.gpus for option in (*fresh, *rest))
        self.grants.options.forget(row)
        self.resized.add(row)
        self.state.make_room(row)
        self.state.rebuild()
        if not fit_to_bounds(self.grants, self.quotas, row):
            self.to_fit.add(row)
        return True

    def fit(self) -> None:
        """Gangs that could not change their size when they were asked to do so now, if they can."""
        self.to_fit = {row for row in self.to_fit if not fit_to_bounds(self.grants, self.quotas, row)}

    def _resized(self, row: int, value: JobRequest) -> tuple[int, int, list[Option], list[Option]]:
        """The least and the most that it would take then, its ways with devices, and those without."""
        t = self.state.tables
        least, most = value.min_gpus or value.gpus, value.max_gpus or value.gpus
        if not 0 < least <= value.gpus <= most:
            raise UsageError(f"{least} to {most} GPUs around {value.gpus}", where="resize", fix="give 1 <= min <= gpus <= max")
        old = [t.options[k] for k in range(int(t.I[c.OPTION_FIRST, row]), int(t.I[c.OPTION_FIRST, row] + t.I[c.OPTION_COUNT, row]))]
        was, rest = int(t.I[c.GPUS, row]), [option for option in old if option.gpus == 0]
        performance = t.performance
        kinds = list(dict.fromkeys(option.type for option in old if option.gpus > 0))
        base = {kind: next(option for option in old if option.type == kind and option.gpus > 0) for kind in kinds}
        sizes = sizes_in_steps({option.gpus for option in old if option.gpus > 0}, least, value.gpus, most)
        rates = {(kind, size): base[kind].rate * (size / max(was, 1) if performance is None else 1.0) for kind in kinds for size in sizes}
        ways = [(kind, size, rates[kind, size], base[kind]) for kind in kinds for size in sizes]
        fresh = [Option(kind, size, rate, rate, like.cpus, like.memory) for kind, size, rate, like in ways]
        least, most = (min(sizes), max(sizes)) if len(sizes) > 1 else (least, most)
        if not any(option.gpus <= t.cluster.gpus_of(t.cluster.types[option.type]) for option in (*fresh, *rest)):
            raise RejectedError(Reason.TOO_LARGE, value.job, "ask for less, or let nodes join first")
        self._within_quota(value.job, t.queues[int(t.I[c.QUEUE, row])], 0 if rest else least)
        return least, most, fresh, rest

    # --- nodes ----------------------------------------------------------------------------------------------------------
    def _change_node(self, value: NodeEvent) -> bool:
        state = self.state
        if value.kind == "join":
            assert value.node is not None
            join_node(state, value.node)
            return True
        device = value.device(state.tables.cluster)
        if device is not None:
            state.tables.kept_free.discard(device)  # what it is from now on is not up to a window
            state.tables.cordon(device, closed=value.kind == "drain")
            if state.tables.windows:
                self.windows.settle()
            return True
        number = value.find(state.tables.cluster)
        up = state.tables.NI[c.N_UP, number] == 1
        if value.kind == "down":  # also one that drains: gangs may still be there
            lose_node(self.grants, number)
        elif value.kind == "drain" and up:
            drain_node(state, number)
        elif value.kind == "up" and not up:
            return_node(state, number)
        return True
