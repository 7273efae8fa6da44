"""The live scheduler: one thread owns the engine, every other one sends it letters and reads its view.

What anybody wants is checked, written to the store, and only then taken in and answered: acknowledged means durable. What happens by
itself (an exit, a limit, a job that others waited for) enters the same way. After a restart the newest checkpoint and the journal behind it
give the same state again, and the runner says who still runs.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from gantline.core import columns as c
from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, near
from gantline.core.inputs import Input, JobWish, Report, SetQueue, Submit, Use, Wish, decode_input, encode_input
from gantline.core.known_rows import KnownRows
from gantline.core.node_events import NodeEvent
from gantline.core.plan import Plan
from gantline.core.snapshot_json import encode_snapshot
from gantline.drivers.journal import Journal
from gantline.drivers.live import Letter, Live
from gantline.engine.regime import find_regime
from gantline.runtime.after_step import Observer
from gantline.runtime.book import Book, Job
from gantline.runtime.clock import WallClock
from gantline.runtime.endings import Endings
from gantline.runtime.launch import Submittable, slots_only
from gantline.runtime.local.devices import changes
from gantline.runtime.local.orders import Task
from gantline.runtime.local.runner import LocalRunner
from gantline.runtime.progress import Progress
from gantline.runtime.records import Entry, Store
from gantline.runtime.setup import Setup, checkpoint_of, find_policy, make_loop
from gantline.runtime.view import View
from gantline.runtime.warm import rehearse

Answer = TypeVar("Answer")
_TICK = 1.0  # seconds between two views while nothing happens but work
_LONGEST_WAIT = 60.0  # seconds that somebody waits for an answer


class Scheduler:
    """Start it, submit to it, read its view; `stop` leaves the jobs running unless they are to be drained."""

    def __init__(
        self, store: Store, runner: LocalRunner, policy: str | None = None, *, settings: Mapping[str, Any] | None = None,
        setup: Setup | None = None, anew: Mapping[str, Any] | None = None, checkpoint_every: int = 500,
        job_env: Callable[[str], Mapping[str, str]] = lambda job: {},
    ) -> None:  # fmt: skip
        self.store, self.runner, self.checkpoint_every = store, runner, checkpoint_every
        self.job_env = job_env  # what else a job's processes are told: the address and its token
        self.setup = setup or Setup()
        self._anew = dict(anew or {})  # what is to be so from now on, whatever it was in an earlier life
        self._wanted = Use(0.0, policy, dict(settings or {})) if policy is not None else None
        if policy is not None:
            self.setup = replace(self.setup, policy=policy, settings=dict(settings or {}))
        self.pending: list[Entry] = []  # to be written down at the next opportunity
        self.lines = 0  # of the journal since the last checkpoint
        self._known = KnownRows()  # what checkpoints have said of jobs that wait
        self.counters: dict[str, float] = {"decisions": 0, "decision_seconds": 0.0, "store_failures": 0, "submitted": 0, "resizes": 0}
        self._thread: threading.Thread | None = None
        self._thinking = ThreadPoolExecutor(1, "gantline-policy")  # decisions are made beside the loop, which answers meanwhile
        self._view = View(0.0, self.setup.policy, dict(self.setup.settings))
        self._requests: dict[tuple[str, str], Future[list[str]]] = {}

    # --- life -----------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Go on where the store says that we were, or begin."""
        self._recover()
        loop = self.loop
        self.journal = Journal(whole=False)
        loop.engine.recorder = self.journal.decided
        loop.engine.guard = self._timed
        loop.on_mail, loop.on_idle = self._write_down, self._idle
        self._meet_machine()
        self.runner.roll_call()
        cluster, told = (lambda: loop.state.tables.cluster), self.endings
        self.runner.attach(self.task, loop.engine.inputs.row_of, self.clock, told.reported, cluster, told.refused)
        self.endings.rearm()
        if self._wanted is not None and (self._wanted.policy, dict(self._wanted.settings)) != (
            self.setup.policy,
            dict(self.setup.settings),
        ):
            loop.post(self._use_letter(self._wanted, Future()))
        self.observer.look()
        self.publish()
        self._thread = threading.Thread(target=self._run, name="gantline-scheduler", daemon=True)
        self._thread.start()

    def _recover(self) -> None:
        saved = self.store.checkpoint()
        if saved is None:
            self.setup = replace(self.setup, **self._anew)
            self.born = time.time()
            self.clock = WallClock(self.born)
            self.loop = make_loop(self.setup, None, self.runner.cluster, self.runner, self.clock)
            self.store.append([Entry("checkpoint", checkpoint_of(self.loop, self.setup, self.born))])
            script: list[tuple[float, Input]] = []
        else:
            after, value = saved
            self.setup, self.born = Setup.from_json(value["setup"]), float(value["born"])
            lines = [line for _, line in self.store.journal(after)]
            script = [(float(line["heard"]), decoded(line)) for line in lines if "input" in line]
            self.lines = len(lines)
            least = max((at for at, _ in script), default=float(value["snapshot"]["now"]))
            self.clock = WallClock(self.born, least)
            self.loop = make_loop(self.setup, value, self.runner.cluster, self.runner, self.clock)
        self.book = Book(self.store.jobs())
        self.next_id = self.book.newest
        self.endings, self.observer, self.progress = Endings(self), Observer(self), Progress(self)
        self._tell_abilities()
        self.loop.fold(script)
        for _, told in script:
            if isinstance(told, Use):
                self.setup = replace(self.setup, policy=told.policy, settings=dict(told.settings))
        if replace(self.setup, **self._anew) != self.setup:
            self._set_up_anew()

    def _tell_abilities(self) -> None:
        t = self.loop.state.tables
        self.loop.postbox.able = lambda row: self.book[t.ids[row]].launch.can(slots_only(t.cluster))

    def _set_up_anew(self) -> None:
        """Go on under other rules: what was is in a checkpoint of its own, so that either side of it can be replayed."""
        self.setup = replace(self.setup, **self._anew)
        saved = checkpoint_of(self.loop, self.setup, self.born)
        self.loop = make_loop(self.setup, saved, self.runner.cluster, self.runner, self.clock)
        self._tell_abilities()
        self.loop.fold(())
        self.store.append([Entry("checkpoint", saved)])
        self.lines = 0

    def _meet_machine(self) -> None:
        """Devices may have come and gone while nobody was here."""
        known = self.loop.state.tables.cluster
        self.runner.machine, events = changes(self.runner.machine, known, frozenset(self.setup.absent))
        if not events:
            return
        down = {event.name for event in events if event.kind == "down"}
        up = {event.name for event in events if event.kind == "up"}
        absent = tuple(sorted((set(self.setup.absent) | down) - up))

        def done(error: BaseException | None) -> None:
            if error is None:
                self.setup, self.lines = replace(self.setup, absent=absent), sys.maxsize  # to be remembered soon

        self.loop.post(Letter(events, done, alone=True, must=True))

    def _run(self) -> None:
        try:
            self.loop.run()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._ended = True

    def _ticked(self) -> None:
        self._ticking = False

    _ticking = False
    failure: BaseException | None = None
    _ended = False

    @property
    def alive(self) -> bool:
        """Whether it decides."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, drain: bool = False, timeout: float = 120.0) -> None:
        """Stop deciding. Jobs go on and are adopted later; with `drain` they are stopped first, and saved where they can be."""
        if drain and self.alive:
            self._drain(timeout)
        self.loop.stop()
        if self._thread is not None:
            self._thread.join()
        self._thinking.shutdown()
        self.runner.close()
        self.flush()

    def _drain(self, timeout: float) -> None:
        nodes = [node.name for node, up in self.ask(self._nodes_up) if up]
        running = self.ask(lambda: [self.loop.state.tables.ids[row] for row in self.loop.state.running_rows.tolist()])
        self._send([NodeEvent(0.0, name, "drain") for name in nodes] + [JobWish(0.0, Wish.REQUEUE, name) for name in running])
        end = time.monotonic() + timeout
        while self.ask(lambda: len(self.loop.reconciler.live)) and time.monotonic() < end:
            time.sleep(0.02)
        future: Future[None] = Future()

        def finish(error: BaseException | None) -> None:
            self.loop.stop()  # before the next decision: that is for the next life
            settle(future, error, None)

        self.loop.post(Letter([NodeEvent(0.0, name, "up") for name in nodes], finish, alone=True))
        wait(future)
        self.runner.mps.quit()

    def _nodes_up(self) -> list[tuple[Any, bool]]:
        t = self.loop.state.tables
        return [(node, bool(t.NI[c.N_UP, k] == 1)) for k, node in enumerate(t.cluster.nodes)]

    # --- what anybody may want ------------------------------------------------------------------------------------------
    def submit(self, spec: Submittable, user: str = "", request: str = "") -> list[str]:
        """Take a job (or an array of them) in; the ids. The same request of the same user again is answered alike, and does nothing."""
        members = list(spec.expand())
        future: Future[list[str]] = Future()
        entered: list[Job] = []

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            known = self._requests.get((user, request)) if request else None
            if request and (user, request) in self.book.requests:
                future.set_result(list(self.book.requests[(user, request)]))
                return (), ()
            if known is not None:
                known.add_done_callback(lambda other: copy_result(other, future))
                return (), ()
            if request:
                self._requests[(user, request)] = future
            values, jobs = self._numbered(members, user, request, at)
            entered.extend(jobs)
            notes = [Entry("event", {"time": at, "event": "submitted", "job": job.id, "user": user}) for job in jobs]
            return values, [*(Entry("job", job.first_record()) for job in jobs), *notes]

        def done(error: BaseException | None) -> None:
            if entered or error is not None:
                self._requests.pop((user, request), None)
            if error is None:
                for job in entered:
                    self.book.enter(job)
                    self.observer.submitted(job)
                self.counters["submitted"] += len(entered)
            if not future.done() and (entered or error is not None):
                settle(future, error, [job.id for job in entered])

        self._post(Letter((), done, open_))
        return wait(future)

    def check(self, spec: Submittable) -> None:
        """Raise what `submit` would, and take nothing in."""

        def check() -> None:
            for member in spec.expand():
                self.loop.engine.inputs.check(member.to_submit("-", self.loop.state.now))

        self.ask(check)

    def _numbered(self, members: Sequence[Submittable], user: str, request: str, at: float) -> tuple[list[Input], list[Job]]:
        self.next_id += 1
        number = str(self.next_id)
        values: list[Input] = []
        jobs: list[Job] = []
        for place, member in enumerate(members):
            launch = member.launch()
            name = f"{number}_{launch.array_index}" if launch.array_index >= 0 else (number if len(members) == 1 else f"{number}_{place}")
            if launch.array_index >= 0 or len(members) > 1:
                launch = replace(launch, array=number)
            job = Job(name, member.to_json(), launch, user, request, at)
            told = self._told(member.to_submit(name, at), job)
            job.asked = {key: told.job[key] for key in ("gpus", "min_gpus", "max_gpus", "priority") if key in told.job}
            values.append(told)
            unknown = [other for other, _ in launch.after if other not in self.book]
            if unknown:
                raise NotFoundError(f"no job '{unknown[0]}'", where="after", fix=near(unknown[0], self.book.jobs))
            if self.book.waits_for_others(job):
                job.holds.add("dependency")
            if launch.parallel and sum(1 for one in jobs if "array-limit" not in one.holds) >= launch.parallel:
                job.holds.add("array-limit")
            jobs.append(job)
        return [*values, *(JobWish(at, Wish.HOLD, job.id) for job in jobs if job.holds)], jobs

    def _told(self, value: Submit, job: Job) -> Submit:
        """With its user, and with an estimate where the specification has none: what such jobs took, else the time limit."""
        value = replace(value, job={**value.job, "user": job.user}) if job.user else value
        if "estimate" in value.job:
            return value
        guess = self.book.typical_seconds(job.user, str(job.spec.get("name", "")))
        guess = job.launch.time_limit if math.isnan(guess) else guess
        return replace(value, job={**value.job, "estimate": guess}) if math.isfinite(guess) and guess > 0 else value

    def wish(self, ids: Sequence[str], wish: Wish, user: str = "", *, gpus: int = 0, min_gpus: int = 0, max_gpus: int = 0) -> None:
        """Cancel, hold, release, requeue or resize jobs: all of them, or none if one cannot be."""
        future: Future[None] = Future()

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            for name in ids:
                if name not in self.book:
                    raise NotFoundError(f"no job '{name}'", where=wish.value, fix=near(name, self.book.jobs))
            values, notes = [], []
            for name in ids:
                job = self.book[name]
                if self.endings.wished(job, wish):
                    values.append(JobWish(at, wish, name, gpus, min_gpus, max_gpus))
                notes.append(Entry("job", job.record()))
                notes.append(Entry("event", {"time": at, "job": name, "event": wish.value, "user": user}))
            gone = {value.job for value in values if self.loop.engine.inputs.row_of(value.job) is None}
            again = [self._again(self.book[name], at) for name in ids if name in gone] if wish is Wish.REQUEUE else []
            return [*again, *(value for value in values if value.job not in gone)], notes

        def done(error: BaseException | None) -> None:
            if error is None and wish is Wish.REQUEUE:
                for job in (self.book[name] for name in ids if self.book[name].ended):
                    job.state, job.reason, job.finished = "pending", "requeued", math.nan  # whoever waits for it waits again
                    self.observer.submitted(job)
            settle(future, error, None)

        self._post(Letter((), done, open_, alone=True))
        wait(future)

    def _again(self, job: Job, at: float) -> Submit:
        """A job that ended in an earlier life of the service comes back under its id, with epochs behind those that it had."""
        from gantline.runtime.spec_file import spec_of

        if job.state not in ("failed", "cancelled", "timeout"):
            raise RefusedError(f"job '{job.id}' {job.state}", where="requeue", fix="submit it again")
        told = self._told(spec_of(dict(job.spec)).to_submit(job.id, at), job)
        job.holds.clear()
        return replace(told, job={**told.job, "epoch": max(job.ended_epoch, 0)})

    def node(self, event: NodeEvent) -> None:
        """A node goes down, drains, comes back or joins."""
        self._send([event])

    def queue(self, name: str, *, weight: float = 1.0, quota: float = math.inf) -> None:
        """From now on a queue has this quota and this weight."""
        self._send([SetQueue(0.0, name, weight, quota)])

    def use(self, policy: str, settings: Mapping[str, Any] | None = None) -> None:
        """Another policy decides from now on."""
        self.rehearse(policy, settings)
        future: Future[None] = Future()
        self._post(self._use_letter(Use(0.0, policy, dict(settings or {})), future))
        wait(future)

    def rehearse(self, policy: str | None = None, settings: Mapping[str, Any] | None = None) -> None:
        """Let a policy (default: the one in force) serve made-up jobs, so that nobody waits for compilers later."""
        way = find_regime(self.setup.regime)
        name, told = (self.setup.policy, self.setup.settings) if policy is None else (policy, settings or {})
        rehearse(find_policy(Use(0.0, name, dict(told)), way.name), self.runner.cluster, way, self.setup.placement)

    def _use_letter(self, value: Use, future: Future[None]) -> Letter:
        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            assert self.loop.engine.find_policy is not None
            self.loop.engine.find_policy(value)  # raises if there is no such policy
            return [value], [Entry("event", {"time": at, "event": "policy", "why": value.policy})]

        def done(error: BaseException | None) -> None:
            if error is None:
                self.setup = replace(self.setup, policy=value.policy, settings=dict(value.settings))
            settle(future, error, None)

        return Letter((), done, open_, alone=True)

    def report(self, job: str, progress: Mapping[str, Any]) -> dict[str, Any]:
        """A job tells how far it is; the answer says what it shall do."""
        return self.progress.heard(job, progress)

    # --- what anybody may see -------------------------------------------------------------------------------------------
    def view(self) -> View:
        """The newest view; values that never change."""
        return self._view

    def snapshot(self) -> dict[str, Any]:
        """This instant as a policy would see it, as plain JSON."""
        return self.ask(lambda: encode_snapshot(self.loop.state.snapshot()))

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question, put between two steps in the thread that owns the engine."""
        future: Future[Answer] = Future()
        found: list[Answer] = []
        self._post(Letter((), lambda error: settle(future, error, found[0] if found else None), call=lambda: found.append(question())))
        return wait(future)

    def publish(self) -> None:
        """Show others what is the case now."""
        self._view = self.observer.view()

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _post(self, letter: Letter) -> None:
        if self._ended or self._thread is None:
            raise UnreachableError("the scheduler is not running", where="scheduler", fix="start it with gantline up")
        self.loop.post(letter)

    def _send(self, values: Sequence[Input]) -> None:
        future: Future[None] = Future()
        self._post(Letter(values, lambda error: settle(future, error, None), alone=True))
        wait(future)

    def task(self, row: int) -> Task:
        """What the runner must know of a row."""
        t = self.loop.state.tables
        job = self.book[t.ids[row]]
        return Task(job.id, job.launch, int(t.I[c.RESTARTS, row]), job.saved, self.job_env(job.id))

    def _write_down(self, at: float, letters: list[Letter]) -> None:
        """Before anything enters it is in the store."""
        told = [Entry("journal", {**encode_input(value), "heard": at}) for letter in letters for value in letter.values]
        self._append([*told, *(note for letter in letters for note in letter.notes)])

    def _append(self, entries: Sequence[Entry]) -> None:
        self._collect()
        everything = [*self.pending, *entries]
        if not everything:
            return
        try:
            self.store.append(everything)
        except OSError:
            self.counters["store_failures"] += 1
            raise
        self.pending = []
        self.lines += sum(1 for entry in everything if entry.kind == "journal")

    def _collect(self) -> None:
        """Decisions since the last time are to be written down, too."""
        if self.journal.lines:
            self.pending += [Entry("journal", line) for line in self.journal.lines]
            self.journal.lines = []

    def _idle(self) -> None:
        """Between two steps: see what has changed, show it, write it down; now and then a checkpoint."""
        self.observer.look()
        self.publish()
        if len(self.loop.state.running_rows) and not self._ticking:  # what moves by itself is shown anew now and then
            self._ticking = True
            self.loop.post_at(self.clock.now() + _TICK, Letter(call=self._ticked))
        self._collect()
        quiet = not self.loop.events and not self.loop.postbox.heard
        lines = self.lines + sum(1 for entry in self.pending if entry.kind == "journal")
        if lines >= self._checkpoint_after() and quiet and self.loop.state.all_arrived:
            self.pending.append(Entry("checkpoint", checkpoint_of(self.loop, self.setup, self.born, self._known)))
            self.lines = -sum(1 for entry in self.pending if entry.kind == "journal")
        self.flush()

    def _checkpoint_after(self) -> int:
        """Lines of the journal before a checkpoint: one costs as much as there are jobs, and so much may a restart fold."""
        return max(self.checkpoint_every, len(self.loop.state.rows))

    def flush(self) -> None:
        """Write down what waits to be; if that cannot be done now, later."""
        try:
            self._append([])
        except OSError:
            return

    def _timed(self, call: Callable[[], Plan]) -> Plan:
        """The policy's answer, and how long it thought: not how long others were served meanwhile."""
        if self.loop.folding:
            return self._thought(call)
        answer = self._thinking.submit(self._thought, call)
        answer.add_done_callback(lambda _: self.loop.ring())
        self.loop.serve_while(lambda: not answer.done())
        return answer.result()

    def _thought(self, call: Callable[[], Plan]) -> Plan:
        began = time.perf_counter()
        try:
            return call()
        finally:
            taken = time.perf_counter() - began
            self.counters["decisions"] += 1
            self.counters["decision_seconds"] += taken
            self.counters["last_decision_seconds"] = taken


def decoded(line: Mapping[str, Any]) -> Input:
    """The input of a journal line."""
    return decode_input({key: line[key] for key in line if key not in ("heard", "after")})


def settle(future: Future[Any], error: BaseException | None, value: Any) -> None:
    """Give a future its end."""
    if error is None:
        future.set_result(value)
    elif isinstance(error, OSError):
        future.set_exception(RefusedError(f"the store cannot be written: {error}", where="store", fix="is the disk full?"))
    else:
        future.set_exception(error)


def copy_result(source: Future[Any], target: Future[Any]) -> None:
    """End one future as the other has."""
    error = source.exception()
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(source.result())


def wait(future: Future[Answer]) -> Answer:
    """The result, if it comes in time."""
    try:
        return future.result(_LONGEST_WAIT)
    except TimeoutError:
        raise UnreachableError(
            "the scheduler has not answered in time", where="scheduler", fix="ask again; requests with an id are safe"
        ) from None


__all__ = ["Live", "Report", "Scheduler"]
