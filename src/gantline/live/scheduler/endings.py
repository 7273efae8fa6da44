"""What follows when something has happened to a job or a node: retries with back-off, limits, others that waited for it.

Everything that follows is an input like any other, and enters together with its cause, so that no decision falls between the two.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gantline.core.cluster import Cluster, Node
from gantline.core.columns import Job as JobColumn
from gantline.core.columns import elapsed
from gantline.core.inputs import Action, Fault, Input, JobRequest, News, NodeEvent, Report
from gantline.core.phases import Phase
from gantline.engine.in_flight import HOLDS
from gantline.live.runners.runner_context import Accounts
from gantline.live.runners.runner_events import Ending, NodeNews, NodeState, RunnerEvents
from gantline.live.scheduler.job_registry import Job, JobRegistry
from gantline.live.scheduler.progress import Progress
from gantline.live.store.records import Entry
from gantline.live.wall_time import Live, Message

_ACCOUNTS = 60.0  # seconds between two looks for an account
_LOG = logging.getLogger("gantline.live")


class Endings:
    """Turns reports of the runner and expired timers into inputs."""

    def __init__(
        self, loop: Live, registry: JobRegistry, progress: Progress, counters: dict[str, float], nodes: NodeWatch,
        nodes_changed: Callable[[NodeWatch], None], accounts: Accounts,
    ) -> None:  # fmt: skip
        self.accounts = accounts
        self.loop, self.registry, self.progress, self.counters = loop, registry, progress, counters
        self.nodes, self.nodes_changed = nodes, nodes_changed
        self.touched: Callable[[Job], None] = lambda job: None  # called where something has changed that the tables do not show
        self._limited: set[tuple[str, int]] = set()  # (job, epoch) whose limit has an alarm

    def rearm(self) -> None:
        """After a restart, set the timers again: retries, limits and dependencies."""
        loop, registry = self.loop, self.registry
        t = loop.state.tables
        for row in loop.reconciler.live:
            if int(t.I[JobColumn.PHASE, row]) == Phase.COMPLETED and t.ids[row] in registry:
                registry[t.ids[row]].leaving = True
        for job in registry:
            if job.ended:
                continue
            if "backoff" in job.holds:
                loop.messages.post_at(job.release_at if job.release_at == job.release_at else 0.0, self.release(job, "backoff"))
            if "dependency" in job.holds:
                loop.messages.post(self.release(job, "dependency"))
            if "account" not in job.holds and loop.engine.inputs.rows.of(job.id) not in loop.reconciler.live:
                loop.messages.post(self._hold_without_account(job))
        self.look_for_accounts()
        for array in registry.arrays:
            self.free_slots(array)

    # --- the runner's reports -------------------------------------------------------------------------------------------
    def received_from_runner(self, events: RunnerEvents) -> None:
        """Receive what the runner tells, in its thread: news of nodes first, then the reports that follow from them."""

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            values, notes = self._nodes_now(events.nodes, at) if events.nodes else ([], [])
            for report, ending in events.reports:
                inputs, entries = self._received(report, ending, at)
                values += inputs
                notes += entries
            return values, notes

        self.loop.messages.post(Message(open=open_, must=True, alone=bool(events.nodes), done=_note_failure))

    def _nodes_now(self, news: Sequence[NodeNews], at: float) -> tuple[list[Input], list[Entry]]:
        events = self.nodes.events(news, self.loop.state.tables.cluster, at)
        why = {one.name: one.why for one in news}
        notes = [Entry("event", {"time": at, "event": f"node-{one.kind}", "node": one.name, "why": why[one.name]}) for one in events]
        if events:
            self.nodes_changed(self.nodes)
        return [*events], notes

    def _received(self, report: Report, ending: Ending | None, at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
        t = self.loop.state.tables
        job, row = self.registry[t.ids[report.row]], report.row
        live = self.loop.reconciler.live.get(row)
        present = int(t.I[JobColumn.EPOCH, row]) == report.epoch or (live is not None and live.onto == report.epoch)
        wanted = present and int(t.I[JobColumn.PHASE, row]) in HOLDS
        if report.news is News.STARTED and wanted:
            self._limit(job, row, report.epoch, at)
        left, job.leaving = ending is not None and job.leaving, ending is None and job.leaving
        if left:
            self.ended(job)
        if ending is None or report.epoch <= job.ended_epoch:
            return [report], ()
        job.ended_epoch, job.exit_code = report.epoch, 0 if left else ending.exit
        values: list[Input] = [report]
        event = {"time": at, "job": job.id, "event": report.news.value, "epoch": report.epoch, "exit_code": ending.exit, "why": ending.why}
        if report.news is News.FAILED and wanted and report.lost is not Fault.NODE:
            job.why = ending.why or (f"ended with exit code {ending.exit}" if ending.exit is not None else "")
            if ending.hold:
                job.holds.add(ending.hold)
                values.append(JobRequest(at, Action.HOLD, job.id))
                self.loop.messages.post_at(at + _ACCOUNTS, self.release(job, ending.hold))
            elif job.has_failed(None if report.lost is Fault.ENGINE else ending.exit, ending.lines, at):
                values.append(JobRequest(at, Action.HOLD, job.id))
                self.loop.messages.post_at(job.release_at, self.release(job, "backoff"))
            else:
                values.append(JobRequest(at, Action.FAIL, job.id))
        return values, [Entry("job", job.record()), Entry("event", event)]

    def refused(self, name: str, gpus: int, why: str) -> None:
        """A job goes on with the devices that it had; it is not given others again until it is requested. From the runner's thread."""

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            t, row = self.loop.state.tables, self.loop.engine.inputs.rows.of(name)
            if row is None or self.registry[name].ended:
                return (), ()
            least = min(int(t.I[JobColumn.MIN_GPUS, row]), gpus)
            note = Entry("event", {"time": at, "job": name, "event": "resize-refused", "gpus": gpus, "why": why})
            return [JobRequest(at, Action.RESIZE, name, gpus, least, gpus)], [note]

        self.loop.messages.post(Message(open=open_, must=True))

    # --- time -----------------------------------------------------------------------------------------------------------
    def _limit(self, job: Job, row: int, epoch: int, now: float) -> None:
        limit = job.launch.time_limit
        if math.isfinite(limit) and (job.id, epoch) not in self._limited:
            self._limited.add((job.id, epoch))
            left = max(0.0, limit - float(self.loop.state.tables.F[JobColumn.SERVICE, row]))
            self.loop.messages.post_at(now + left, self._over_limit(job, row, epoch))

    def limit_changed(self, job: Job) -> None:
        """Apply a new time limit to a running job."""
        t, row = self.loop.state.tables, self.loop.engine.inputs.rows.of(job.id)
        if row is not None and int(t.I[JobColumn.PHASE, row]) in HOLDS:
            epoch = int(t.I[JobColumn.EPOCH, row])
            self._limited.add((job.id, epoch))
            self.loop.messages.post(self._over_limit(job, row, epoch))

    def _over_limit(self, job: Job, row: int, epoch: int) -> Message:
        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            t = self.loop.state.tables
            if int(t.I[JobColumn.EPOCH, row]) != epoch or int(t.I[JobColumn.PHASE, row]) not in HOLDS:
                return (), ()  # it has ended, or runs anew
            if math.isinf(job.launch.time_limit):
                return (), ()  # it was lifted
            had = float(t.F[JobColumn.SERVICE, row]) + elapsed(t.F, t.I, row, at)
            if had < job.launch.time_limit - 1e-3:
                self.loop.messages.post_at(at + job.launch.time_limit - had, self._over_limit(job, row, epoch))
                return (), ()
            job.ending = "time-limit"
            return [JobRequest(at, Action.FAIL, job.id)], [Entry("job", job.record())]

        return Message(open=open_, must=True)

    def release(self, job: Job, cause: str) -> Message:
        """Remove one of a job's holds."""

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            if cause not in job.holds or job.ended:
                return (), ()
            if cause == "account" and self.accounts.lacks(job.user):
                self.loop.messages.post_at(at + _ACCOUNTS, self.release(job, cause))
                return (), ()
            if cause == "dependency":
                verdict = self.registry.waits_for_others(job)
                if verdict == "dependency":
                    return (), ()
                if verdict:
                    job.ending, job.why = verdict, self.registry.in_vain(job)
                    return [JobRequest(at, Action.FAIL, job.id)], [Entry("job", job.record())]
            job.holds.discard(cause)
            if job.holds:  # another hold remains, and is shown
                self.touched(job)
                return (), [Entry("job", job.record())]
            return [JobRequest(at, Action.RELEASE, job.id)], [Entry("job", job.record())]

        return Message(open=open_, must=True)

    def _hold_without_account(self, job: Job) -> Message:
        """Hold a job whose user has no account, where jobs run as those of their users."""

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            if job.ended or not self.accounts.lacks(job.user):
                return (), ()
            held = bool(job.holds)
            job.holds.add("account")
            return ([] if held else [JobRequest(at, Action.HOLD, job.id)]), [Entry("job", job.record())]

        return Message(open=open_, must=True)

    def look_for_accounts(self) -> None:
        """Let go on what waits for an account, where there is one now; otherwise it is looked for every minute."""
        for job in self.registry:
            if "account" in job.holds and not job.ended:
                self.loop.messages.post(self.release(job, "account"))

    # --- others ---------------------------------------------------------------------------------------------------------
    def started(self, job: Job) -> None:
        """A job has started: those that waited for that may go on."""
        registry = self.registry
        for name in sorted(registry.waiting_for.get(job.id, ())):
            if (job.id, "started") in registry[name].launch.after:
                self.loop.messages.post(self.release(registry[name], "dependency"))

    def resized(self, job: Job, row: int) -> None:
        """Count a change of its number of devices; after the last allowed one the number is fixed."""
        job.resizes += 1
        self.counters["resizes"] += 1
        if job.launch.resizes is None or job.resizes < job.launch.resizes:
            return

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            held = int(self.loop.state.tables.I[JobColumn.HELD, row])
            if job.ended or not held:
                return (), ()
            note = Entry("event", {"time": at, "job": job.id, "event": "resize-limit", "why": f"has been resized {job.resizes} times"})
            return [JobRequest(at, Action.RESIZE, job.id, held, held, held)], [Entry("job", job.record()), note]

        self.loop.messages.post(Message(open=open_, must=True))

    def ended(self, job: Job) -> None:
        """A job has come to its end: those that waited for it may go on."""
        registry = self.registry
        for name in sorted(registry.waiting_for.get(job.id, ())):
            self.loop.messages.post(self.release(registry[name], "dependency"))
        if job.launch.array:
            self.free_slots(job.launch.array)
        self.progress.forget(job.id)
        self._limited -= {(job.id, epoch) for epoch in range(job.ended_epoch + 2)}

    def free_slots(self, array: str) -> None:
        for name in self.registry.slots_of(array):
            self.loop.messages.post(self.release(self.registry[name], "array-limit"))

    def requested(self, job: Job, request: Action) -> bool:
        """Apply a user's request to a job's own state; whether the engine is to receive it too."""
        if request is Action.HOLD:
            job.holds.add("held")
        elif request is Action.RELEASE:
            job.holds -= {"held", "backoff"}
            return not job.holds
        elif request is Action.SAVE:
            job.saves_asked += 1
        elif request is Action.REQUEUE:
            job.failures = job.lost = 0
            job.ending, job.why, job.lines = "", "", ()
        return True


def _note_failure(error: BaseException | None) -> None:
    """What a runner tells has happened and cannot be refused; where it cannot be taken in either, that must be seen."""
    if error is not None:
        _LOG.error("what the runner has told cannot be taken in", exc_info=error)


# What news of nodes mean for the engine: which join, are lost, return, are drained or replaced. The name of a node is its identity.


@dataclass
class NodeWatch:
    """Which nodes the runner does not offer. An operator's cordon is none of its business: what the runner repeats does not undo it."""

    absent: set[str] = field(default_factory=set)  # lost
    drained: set[str] = field(default_factory=set)

    def events(self, news: Iterable[NodeNews], cluster: Cluster, at: float) -> list[NodeEvent]:
        """The engine's inputs; none for what it knows already."""
        shapes = {node.name: shape(node) for node in cluster.nodes}
        found: list[NodeEvent] = []
        for one in news:
            new = self._events(one, shapes, at)
            for event in new:
                self.see(event)
                if event.node is not None:
                    shapes[event.name] = shape(event.node)
            found += new
        return found

    def see(self, event: NodeEvent) -> None:
        """An event of the runner's, now or in the journal."""
        if not event.reported:
            return
        self.absent.discard(event.name)
        self.drained.discard(event.name)
        if event.kind == "down":
            self.absent.add(event.name)
        elif event.kind == "drain":
            self.drained.add(event.name)

    def _events(self, news: NodeNews, shapes: dict[str, tuple[str, int]], at: float) -> list[NodeEvent]:
        name, known = news.name, shapes.get(news.name) or _device_of(news.name, shapes)

        def event(kind: str, node: Node | None = None) -> NodeEvent:
            return NodeEvent(at, name, kind, node, reported=True)

        if news.state is NodeState.LOST:
            return [event("down")] if known is not None and name not in self.absent else []
        if news.state is NodeState.DRAINED:
            is_same = news.node is None or known == shape(news.node)
            if known is not None and is_same and name not in self.absent:
                return [event("drain")] if name not in self.drained else []
            return [*self._events(replace(news, state=NodeState.UP), shapes, at), event("drain")] if news.node is not None else []
        if name not in shapes and known is not None:
            return [event("up")] if name in self.drained else []
        assert news.node is not None, f"nothing is known about node {name}"
        if known is None:
            return [event("join", replace(news.node, name=name))]
        if known != shape(news.node):  # what was on the old one is gone, whatever became of it
            lost = [] if name in self.absent else [event("down")]
            return [*lost, event("join", replace(news.node, name=name))]
        return [event("up")] if name in self.absent | self.drained else []


def _device_of(name: str, shapes: dict[str, tuple[str, int]]) -> tuple[str, int] | None:
    """The shape of one device of a node, ``node0:3``: what others use of a node is drained device by device."""
    node, _, place = name.rpartition(":")
    kind, devices = shapes.get(node, ("", 0))
    return (kind, 1) if place.isdigit() and int(place) < devices else None


def shape(node: Node) -> tuple[str, int]:
    """What a node of the same name must have to be the same node."""
    return node.type, node.gpus


def all_nodes(present: Cluster, known: Cluster, drained: Mapping[str, str]) -> list[NodeNews]:
    """News of every node: those that are there, of which some are drained, and those that are gone."""
    names = {node.name for node in present.nodes}
    gone = [NodeNews(node.name, NodeState.LOST, why="it was not there at the start") for node in known.nodes if node.name not in names]
    there = (
        NodeNews(node.name, NodeState.DRAINED if node.name in drained else NodeState.UP, node, drained.get(node.name, ""))
        for node in present.nodes
    )
    return [*gone, *there]
