"""Users' requests: submitting jobs (numbered, once for each request), and what is requested of jobs later."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from gantline.core.columns import Job as JobColumn
from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.core.inputs import Action, Input, JobRequest, Submit
from gantline.core.phases import Phase
from gantline.engine.drivers.message_queue import Message
from gantline.live.after_step import Observer
from gantline.live.answers import copy_result, settle
from gantline.live.book import Book, Job
from gantline.live.clock import WallClock
from gantline.live.endings import Endings
from gantline.live.launch import RuntimeEnv, Submittable
from gantline.live.loop_thread import LoopThread
from gantline.live.queues import made_for
from gantline.live.records import Entry


class Requests:
    """Receives jobs and requests, from any thread."""

    def __init__(
        self, thread: LoopThread, book: Book, endings: Endings, observer: Observer, clock: WallClock, unknown_queues: str,
        counters: dict[str, float], republish: Callable[[], None],
    ) -> None:  # fmt: skip
        self.thread, self.loop, self.book, self.endings, self.observer, self.clock = thread, thread.loop, book, endings, observer, clock
        self.unknown_queues = unknown_queues  # what becomes of a job whose queue does not exist
        self.counters, self.republish = counters, republish
        self.next_id = book.newest
        self._requests: dict[tuple[str, str], Future[list[str]]] = {}

    def submit(self, spec: Submittable, user: str = "", request: str = "", environment: RuntimeEnv | None = None) -> list[str]:
        """Submit a job (or an array of them); the ids. The same request of the same user again is answered alike, and does nothing.

        `environment` is its runtime environment as the runner has packed it.
        """
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
            queue, about_queue = self.queue_for(str(spec.to_json().get("queue", "")), user, at)
            values, jobs = self._numbered(spec, user, request, at, environment)
            entered.extend(jobs)
            event = {"time": at, "event": "submitted", "user": user}
            head = jobs[0] if len(jobs) > 1 else None
            return [*queue, *values], [
                *about_queue,
                *(Entry("job", job.first_record(head)) for job in jobs),
                *(Entry("event", {**event, "job": job.id}) for job in jobs),
            ]

        def done(error: BaseException | None) -> None:
            if entered or error is not None:
                self._requests.pop((user, request), None)
            if error is None:
                for job in entered:
                    self.book.enter(job)
                self.observer.submitted(entered, are_new=True)
                self.republish()
                self.counters["submitted"] += len(entered)
            if not future.done() and (entered or error is not None):
                settle(future, error, [job.id for job in entered])

        self.thread.post(Message((), done, open_))
        return self.thread.wait(future)

    def check(self, spec: Submittable) -> None:
        """Raise what `submit` would, and change nothing."""

        def check() -> None:
            self.queue_for(str(spec.to_json().get("queue", "")), "", self.loop.state.now)
            self.loop.engine.inputs.check(spec.first().to_submit("-", self.loop.state.now))

        self.thread.ask(check)

    def queue_for(self, queue: str, user: str, at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
        """What enters before a job of that queue, see `made_for`."""
        return made_for(self.loop.state.tables.queue_tree, self.unknown_queues, queue, user, at)

    def _numbered(
        self, spec: Submittable, user: str, request: str, at: float, environment: RuntimeEnv | None
    ) -> tuple[list[Input], list[Job]]:
        """The job, or the jobs of an array, which are one input: only their index differs, and the engine does not receive it."""
        self.next_id += 1
        number, book = str(self.next_id), self.book
        ways = [replace(way, runtime_env=environment) for way in spec.launches(number)] if environment else spec.launches(number)
        array = ways[0].array == number
        names = [f"{number}_{way.array_index}" for way in ways] if array else [number]
        first = spec.first()
        shown = first.to_json()
        jobs = [
            Job(name, {**shown, "index": way.array_index} if "index" in shown else shown, way, user, request, at)
            for name, way in zip(names, ways, strict=True)
        ]
        submit = self._completed(first.to_submit(names[0], at), jobs[0])
        unknown = [other for other, _ in ways[0].after if other not in book]
        if unknown:
            raise NotFoundError(f"no job '{unknown[0]}'", where="after", fix=near(unknown[0], [one.id for one in book if one.user == user]))
        asked = {key: submit.job[key] for key in ("gpus", "min_gpus", "max_gpus", "priority", "estimate") if key in submit.job}
        waits, inside = {"dependency"} if book.waits_for_others(jobs[0]) else set(), ways[0].parallel or len(jobs)
        for place, job in enumerate(jobs):
            job.asked, job.holds = dict(asked), waits | ({"array-limit"} if place >= inside else set())
        if array:
            submit = replace(submit, job={key: value for key, value in submit.job.items() if key != "id"}, ids=tuple(names))
        return [submit, *JobRequest.of(at, Action.HOLD, [job.id for job in jobs if job.holds])], jobs

    def as_submitted_now(self, member: Submittable, user: str) -> Submit:
        """The engine's input for a job, were it submitted now."""
        return self._completed(member.to_submit("-", self.clock.now()), Job("-", member.to_json(), member.launch(), user))

    def _completed(self, value: Submit, job: Job) -> Submit:
        """The input with the job's user, and an estimate where the specification has none: what such jobs took, else the time limit."""
        value = replace(value, job={**value.job, "user": job.user}) if job.user else value
        if "estimate" in value.job:
            return value
        guess = self.book.typical_seconds(job.user, str(job.spec.get("name", "")))
        guess = job.launch.time_limit if math.isnan(guess) else guess
        return replace(value, job={**value.job, "estimate": guess}) if math.isfinite(guess) and guess > 0 else value

    def request(self, ids: Sequence[str], request: Action, user: str, gpus: int, min_gpus: int, max_gpus: int) -> None:
        """Cancel, hold, release, requeue or resize jobs: all of them, or none if one cannot be."""
        future: Future[None] = Future()

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            for name in ids:
                if name not in self.book:
                    raise NotFoundError(f"no job '{name}'", where=request.value, fix=near(name, self.book.jobs))
                self._check_not_over(self.book[name], request)
            event = {"time": at, "event": request.value, "user": user}
            received, notes = list[str](), list[Entry]()
            for name in ids:
                if request is Action.SAVE:
                    _may_save(self.book[name])
            for name in ids:
                job = self.book[name]
                if self.endings.requested(job, request):
                    received.append(name)
                notes += [Entry("job", job.record()), Entry("event", {**event, "job": name})]
            over = {name for name in ids if self._is_over(self.book[name])}
            again = [self._again(self.book[name], at) for name in ids if name in over]
            there = [name for name in received if name not in over]
            return [*again, *JobRequest.of(at, request, there, gpus, min_gpus, max_gpus)], notes

        def done(error: BaseException | None) -> None:
            if request is Action.REQUEUE and error is None:
                back = [job for job in map(self.book.__getitem__, ids) if job.ended]
                for job in back:
                    job.state, job.reason, job.finished = "pending", "requeued", math.nan  # what waits for it waits again
                self.observer.submitted(back)
            if error is None:
                self.republish()  # whoever has the answer and asks for a forecast does not get one from before
            settle(future, error, None)

        self.thread.post(Message((), done, open_, alone=True))
        self.thread.wait(future)

    def _is_over(self, job: Job) -> bool:
        """Whether it has ended: by the book, which may be a step behind, or by the engine, which forgets those that have."""
        row = self.loop.engine.inputs.rows.of(job.id)
        return job.ended if row is None else Phase(int(self.loop.state.tables.I[JobColumn.PHASE, row])).terminal

    def _check_not_over(self, job: Job, request: Action) -> None:
        """Refuse what cannot be done to a job that has ended, before it is written down: checkpoints do not contain such a job."""
        if not self._is_over(job):
            return
        when = "" if math.isnan(job.finished) else f" at {self.clock.day_and_time(job.finished)}"
        ended = f"job '{job.id}' had ended: {job.state if job.ended else 'just now'}{when}"
        if request is not Action.REQUEUE:
            raise RefusedError(
                ended, where=request.value, fix="nothing was done" if request is Action.CANCEL else "submit it again, or requeue it"
            )
        if job.state not in ("failed", "cancelled", "timeout"):
            raise RefusedError(ended, where=request.value, fix="submit it again")
        row = self.loop.engine.inputs.rows.of(job.id)
        if row is not None and row in self.loop.reconciler.live:
            raise RefusedError(
                f"{ended}; its processes are still there", where=request.value, fix=f"try again after: gantline wait {job.id}"
            )

    def _again(self, job: Job, at: float) -> Submit:
        """A job that has ended comes back under its id, with epochs behind those that it had."""
        from gantline.live.spec_file import spec_of

        submit = self._completed(spec_of(dict(job.spec)).to_submit(job.id, at), job)
        job.holds.clear()
        return replace(submit, job={**submit.job, "epoch": max(job.ended_epoch, 0)})


def _may_save(job: Job) -> None:
    """Refuse to ask for a save that a job could not make; to stop it for that would lose what it has not saved."""
    if job.state not in ("running", "resizing"):
        raise RefusedError(f"job '{job.id}' is {job.state}: it has nothing to save", where="save", fix="try again while it runs")
    if not job.saves_on_demand:
        text = f"job '{job.id}' cannot save while it runs: its specification has no checkpoint.save, and it has reported no save"
        raise RefusedError(text, where="save", fix="submit it with checkpoint: {save: USR1}, or let it call job.keep of gantline.train")
