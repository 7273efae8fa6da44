"""The live scheduler: one thread owns the engine, all others send it messages and read its view.

A request is checked, written to the store, and only then applied and answered: acknowledged means durable. What happens by
itself (an exit, a limit, a job that others waited for) enters the same way. After a restart the newest checkpoint and the journal behind it
give the same state again, and the runner reports which jobs still run.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.inputs import Action, Input, NodeEvent, Report, Reserve, SetQueue, Unreserve, Use, encode_input
from gantline.core.job_json import KnownRows
from gantline.core.plan import Plan
from gantline.core.snapshot_json import encode_snapshot
from gantline.core.windows import AdvanceWindow
from gantline.engine.drivers.journal import Journal
from gantline.engine.executor import Can
from gantline.engine.policy_failures import Incident, OverBudgetError
from gantline.engine.walk.eviction import check_choice
from gantline.live.jobs.launch import RuntimeEnv, Submittable
from gantline.live.runners.runner import Runner, RunnerEvents
from gantline.live.runners.runner_context import Contact, Task
from gantline.live.scheduler.decision_thread import DecisionThread, rehearse
from gantline.live.scheduler.endings import Endings, NodeWatch, all_nodes
from gantline.live.scheduler.job_registry import JobRegistry
from gantline.live.scheduler.loop_thread import Answer, LoopThread, WallClock, settle
from gantline.live.scheduler.loop_thread import drain as drain_jobs
from gantline.live.scheduler.observer import Observer, WindowEvents
from gantline.live.scheduler.progress import Progress
from gantline.live.scheduler.recovery import Begun, NewLife, begin, begin_life, is_long_over
from gantline.live.scheduler.requests import Requests, SubmittedExternalJobs, take_in
from gantline.live.scheduler.setup import Setup, checkpoint_of, without_simulated_options
from gantline.live.scheduler.store_writer import PolicyWords, StoreWriter
from gantline.live.scheduler.view import View
from gantline.live.store.records import Entry, Store
from gantline.live.wall_time import Live, Message
from gantline.traces.files.policies import load_policy

_EVENTS = 1000  # of earlier services that are looked through for windows
_TICK = 1.0  # seconds between two views while nothing happens but work


class Scheduler:
    """Start it, submit to it, read its view; `stop` leaves the jobs running unless they are to be drained."""

    # set once it has started
    loop: Live
    clock: WallClock
    born: float
    registry: JobRegistry
    archived: Mapping[str, Any]  # what jobs that have left for the archive add up to
    thread: LoopThread
    endings: Endings
    observer: Observer
    progress: Progress
    requests: Requests
    writer: StoreWriter

    def __init__(
        self, store: Store, runner: Runner, policy: str | None = None, *, settings: Mapping[str, Any] | None = None,
        setup: Setup | None = None, anew: Mapping[str, Any] | None = None, checkpoint_every: int = 500,
        job_env: Callable[[str], Mapping[str, str]] = lambda job: {}, wall: Callable[[], float] = time.time, life: NewLife | None = None,
    ) -> None:  # fmt: skip
        self._life = life  # another one of the store that begins now
        self.wall = wall  # the clock that people can set; tests give one of their own
        self.store, self.runner, self.checkpoint_every = store, runner, checkpoint_every
        self.job_env = job_env  # further variables of a job's processes: the service's address and the job's token
        self.setup = setup or Setup()
        self.anew = dict(anew or {})  # settings that replace those of the earlier service
        self._wanted = Use(0.0, policy, dict(settings or {})) if policy is not None else None
        if policy is not None:
            self.setup = replace(self.setup, policy=policy, settings=dict(settings or {}))
        self.set_aside: list[str] = []  # parts of the past that could not be used at the start
        self.when_quiet: deque[Callable[[], None]] = deque()  # to be done between two steps, when a checkpoint can be made
        self.crowd = sys.maxsize  # `crowded` is called when more ended jobs than this are here
        self.crowded: Callable[[], None] = lambda: None
        self._known, self._shown = KnownRows(), KnownRows()  # waiting jobs as the last checkpoint and snapshot have them
        self.counters: dict[str, float] = {"submitted": 0, "resizes": 0}
        self.decision_thread = DecisionThread()
        self._view = View(0.0, self.setup.policy, dict(self.setup.settings))

    # --- life -----------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Continue from the store, or begin."""
        begun = begin(self.store, self.runner, self.setup, self.anew, self.wall)
        self.setup, self.born, self.clock, self.loop, self.registry = begun.setup, begun.born, begun.clock, begun.loop, begun.registry
        self._put_together(begun)
        if self._life is not None:
            self.observer.look()
            self.writer.write([])
            begin_life(begun, self.store, self.runner, self._life)
            self.loop = begun.loop
            self._put_together(begun)
        self.archived, self.set_aside = begun.archived, begun.set_aside
        loop, endings = self.loop, self.endings
        endings.received_from_runner(RunnerEvents(tuple(all_nodes(self.runner.cluster, loop.state.tables.cluster, self.runner.drained))))
        self.runner.adopt(lambda job: self._life is None and is_long_over(loop, self.registry, job))
        rows = loop.engine.inputs.rows
        found = SubmittedExternalJobs(self.requests, self.registry)
        self.runner.attach(
            Contact(
                self.task,
                rows.of,
                self.clock,
                endings.received_from_runner,
                lambda: loop.state.tables.cluster,
                endings.refused,
                found,
                self.registry.to_run,
            )
        )
        endings.rearm()
        wanted = self._wanted
        if wanted is not None and (wanted.policy, dict(wanted.settings)) != (self.setup.policy, dict(self.setup.settings)):
            loop.messages.post(self._use_message(wanted, Future()))
        self.observer.look()
        self.publish()
        self.thread.start()

    def _put_together(self, begun: Begun) -> None:
        """The parts, each with what it uses."""
        loop, registry, clock = begun.loop, begun.registry, begun.clock
        journal = Journal(whole=False)
        loop.engine.recorder, loop.engine.guard = journal.decided, self._timed
        loop.on_messages, loop.on_idle = self._write_down, self._idle
        self.thread = LoopThread(loop)
        self.writer = StoreWriter(self.store, journal, PolicyWords(loop.engine), begun.lines)
        self.progress = Progress(loop, registry, self.runner, begun.setup.end_by)
        self.endings = Endings(loop, registry, self.progress, self.counters, begun.nodes, self._nodes_changed, self.runner.accounts)
        windows = WindowEvents(begun.windows, lambda: list(self.store.events(limit=_EVENTS, newest=True)))
        self.observer = Observer(loop, registry, self.endings, clock, self.writer, windows)
        loop.inbox.on_order = self.observer.ordered
        unknown = begun.setup.unknown_queues
        self.requests = Requests(self.thread, registry, self.endings, self.observer, clock, unknown, self.counters, self.republish)

    def _nodes_changed(self, nodes: NodeWatch) -> None:
        """What the runner does not offer is part of every checkpoint from now on."""
        self.setup = replace(self.setup, absent=tuple(sorted(nodes.absent)), drained=tuple(sorted(nodes.drained)))

    def _ticked(self) -> None:
        self._ticking = False

    _ticking = False

    @property
    def failure(self) -> BaseException | None:
        """What ended its thread, where it was not stopped."""
        return self.thread.failure

    @property
    def alive(self) -> bool:
        """Whether it decides and its decisions are carried out: all its threads are at work."""
        return hasattr(self, "thread") and self.thread.alive and self.runner.alive

    def stop(self, drain: bool = False, timeout: float = 120.0) -> None:
        """Stop deciding. Jobs go on and are adopted later; with `drain` they are stopped first, and saved where they can be."""
        drained = drain and self.alive
        if drained:
            drain_jobs(self.thread, timeout)
        self.runner.leave(drained)
        self.thread.stop()
        self.decision_thread.close()
        self.runner.close()
        self.writer.flush()

    # --- requests from any thread ---------------------------------------------------------------------------------------
    def submit(self, spec: Submittable, user: str = "", request: str = "") -> list[str]:
        """Submit a job (or an array of them); the ids. The same request of the same user again is answered alike, and does nothing."""
        return self.requests.submit(spec, user, request, self._accepted(spec))

    def check(self, spec: Submittable) -> None:
        """Raise what `submit` would, and change nothing."""
        self._accepted(spec)
        self.requests.check(spec)

    def _accepted(self, spec: Submittable) -> RuntimeEnv:
        """The runtime environment of a job, as the runner has put it by; a job that the runner cannot run is refused."""
        launch = spec.first().launch()
        why = self.runner.refusal(launch) if not launch.object else "it says that it is an object of the engine, which a runner alone finds"
        if not why and launch.part < 1.0 and Can.COLLOCATE not in self.runner.abilities:
            why = f"it asks for {launch.part:g} of a device, and this executor puts one gang on a device"
        if why:
            raise RefusedError(why, where="job", fix="leave it out, or use a service with another executor")
        return self.runner.pack(launch.runtime_env)

    def request(self, ids: Sequence[str], request: Action, user: str = "", *, gpus: int = 0, min_gpus: int = 0, max_gpus: int = 0) -> None:
        """Cancel, hold, release, requeue or resize jobs: all of them, or none if one cannot be."""
        self.requests.request(ids, request, user, gpus, min_gpus, max_gpus)

    def node(self, event: NodeEvent) -> None:
        """A node goes down, drains, comes back or joins."""
        self.send([event])

    def queue(self, name: str, *, weight: float = 1.0, quota: float = math.inf, borrow: float = 0.0) -> None:
        """From now on a queue is promised this many devices, may borrow so many more, and has this weight."""
        self.send([SetQueue(0.0, name, weight, quota, borrow)])

    def drop_queue(self, name: str) -> None:
        """From now on there is no such queue; its jobs stay, and nothing bounds them."""
        self.send([SetQueue(0.0, name, drop=True)])

    def reserve(self, window: AdvanceWindow) -> AdvanceWindow:
        """Keep devices free for a window; it comes back with its name and the places that it has."""
        kept = take_in(self.thread, Reserve(0.0, window))
        self.ask(self.republish)
        return kept

    def unreserve(self, name: str) -> None:
        """Give a window up, or end it before its time."""
        take_in(self.thread, Unreserve(0.0, name))
        self.ask(self.republish)

    def use(self, policy: str, settings: Mapping[str, Any] | None = None) -> None:
        """Another policy decides from now on."""
        self.rehearse(policy, settings)
        future: Future[None] = Future()
        self.post(self._use_message(Use(0.0, policy, dict(settings or {})), future))
        self.thread.wait(future)
        self.ask(self.republish)

    def rehearse(self, policy: str | None = None, settings: Mapping[str, Any] | None = None) -> None:
        """Let a policy (default: the one in force) serve made-up jobs, so that no decision waits for compilers later."""
        name, given = (self.setup.policy, self.setup.settings) if policy is None else (policy, settings or {})
        with without_simulated_options():
            rehearse(load_policy(name, dict(given)), self.runner.cluster, self.setup.rules(self.runner.cluster))

    def _use_message(self, value: Use, future: Future[None]) -> Message:
        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            assert self.loop.engine.find_policy is not None
            check_choice(self.loop.state, self.loop.engine.find_policy(value))  # raises if there is no such policy, or it may not decide
            return [value], [Entry("event", {"time": at, "event": "policy", "why": value.policy})]

        def done(error: BaseException | None) -> None:
            if error is None:
                self.setup = replace(self.setup, policy=value.policy, settings=dict(value.settings))
            settle(future, error, None)

        return Message((), done, open_, alone=True)

    def report(self, job: str, progress: Mapping[str, Any]) -> dict[str, Any]:
        """Take a job's report of its progress; the answer says what it shall do."""
        return self.progress.received(job, self._view.jobs.get(job), progress)

    # --- reads from any thread ------------------------------------------------------------------------------------------
    def view(self) -> View:
        """The newest view; values that never change."""
        return self._view

    def snapshot(self) -> dict[str, Any]:
        """This instant as a policy would see it, as plain JSON."""

        def encoded() -> dict[str, Any]:
            self._shown.look(self.loop.state.tables)
            return encode_snapshot(self.loop.state.snapshot(), self._shown)

        return self.ask(encoded)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question, put between two steps in the thread that owns the engine."""
        return self.thread.ask(question)

    def publish(self) -> None:
        """Publish a new view."""
        self._view = self.observer.view(self.setup, {**self.counters, **self.decision_thread.counters()})

    def republish(self) -> None:
        """Publish a new view after a change that makes forecasts invalid, whether or not the tables show it yet."""
        self.observer.version += 1
        self.publish()

    def look_for_accounts(self) -> None:
        """Users have other accounts now: jobs that waited for that go on; from any thread."""
        self.ask(self.endings.look_for_accounts)

    def note_incident(self, event: str, what: str) -> None:
        """Something that people must see has happened: an incident and an event, as soon as that can be written; from any thread."""

        def note() -> None:
            self.loop.engine.incidents.append(Incident(self.clock.now(), self.loop.state.decision, what))
            self.writer.add(Entry("event", {"time": self.clock.now(), "event": event, "why": what}))

        self.post(Message(call=note))

    # --- inside ---------------------------------------------------------------------------------------------------------
    def post(self, message: Message) -> None:
        """Send the thread that owns the engine a message; refused where it does not run."""
        self.thread.post(message)

    def send(self, values: Sequence[Input]) -> None:
        """Apply inputs together, and wait until the next view shows them."""
        self.thread.send(values)
        self.ask(self.republish)

    def task(self, row: int) -> Task:
        """What the runner needs of a row."""
        t = self.loop.state.tables
        job = self.registry[t.ids[row]]
        return Task(job.id, job.launch, int(t.I[Job.RESTARTS, row]), job.saved, job.user, self.job_env(job.id))

    def _write_down(self, at: float, messages: list[Message]) -> None:
        """Write inputs to the store before they are applied."""
        journal = [Entry("journal", {**encode_input(value), "heard": at}) for message in messages for value in message.values]
        self.writer.write([*journal, *(note for message in messages for note in message.notes)])

    def forget(self, ids: Sequence[str]) -> None:
        """Jobs have left for the archive: nothing of them is kept here."""
        self.registry.forget(ids)
        self.observer.forget(ids)
        self.runner.forget(ids)
        self.republish()

    def _idle(self) -> None:
        """Between two steps: publish and record what has changed; now and then a checkpoint."""
        self.observer.look()
        self.publish()
        if len(self.loop.state.running_rows) and not self._ticking:  # what moves by itself is shown anew now and then
            self._ticking = True
            self.loop.messages.post_at(self.clock.now() + _TICK, Message(call=self._ticked))
        quiet = self.loop.is_quiet and self.loop.state.all_arrived
        if self.writer.lines_by_now() >= self._checkpoint_after() and quiet:
            self.writer.add_checkpoint(Entry("checkpoint", checkpoint_of(self.loop, self.setup, self.born, self._known)))
        self.writer.flush()
        while self.when_quiet and quiet:
            self.when_quiet.popleft()()
        if self.observer.over > self.crowd:
            self.crowded()

    def _checkpoint_after(self) -> int:
        """Lines of the journal before a checkpoint: its cost grows with the jobs, and a restart may fold that many lines."""
        return max(self.checkpoint_every, len(self.loop.state.rows))

    def _timed(self, call: Callable[[], Plan]) -> Plan:
        """The policy's answer, while others are served; one that comes too late is written down, because nothing else records it."""
        loop = self.loop
        if loop.folding:
            return self.decision_thread.here(call)
        try:
            return self.decision_thread.in_thread(call, self.setup.budget, loop.serve_while, loop.messages.ring)
        except OverBudgetError as error:
            now = loop.state.now
            overrun = Entry("event", {"time": now, "event": "decision-overrun", "why": error.what})
            self.writer.add(Entry("journal", {"overrun": loop.state.decision, "now": now}), overrun)
            raise


__all__ = ["Live", "Report", "Scheduler"]
