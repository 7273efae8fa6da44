"""Users' requests: submitting jobs (numbered, once for each request), what is requested of them later, and changes of them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from gantline.core.columns import Job as JobColumn
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.inputs import Action, Input, JobRequest, Reserve, SetJob, SetQueue, Submit, Unreserve
from gantline.core.phases import Phase
from gantline.core.queues import Queue, known_names
from gantline.core.windows import AdvanceWindow
from gantline.live.jobs.launch import RuntimeEnv, Submittable
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.runner_context import ExternalJobs
from gantline.live.scheduler.endings import Endings
from gantline.live.scheduler.job_registry import Job, JobRegistry
from gantline.live.scheduler.loop_thread import LoopThread, WallClock, copy_result, settle
from gantline.live.scheduler.observer import Observer
from gantline.live.store.records import Entry
from gantline.live.wall_time import Message


class Requests:
    """Receives jobs and requests, from any thread."""

    def __init__(
        self, thread: LoopThread, registry: JobRegistry, endings: Endings, observer: Observer, clock: WallClock, unknown_queues: str,
        counters: dict[str, float], republish: Callable[[], None],
    ) -> None:  # fmt: skip
        self.thread, self.loop, self.registry, self.endings, self.observer, self.clock = (
            thread,
            thread.loop,
            registry,
            endings,
            observer,
            clock,
        )
        self.unknown_queues = unknown_queues  # what becomes of a job whose queue does not exist
        self.counters, self.republish = counters, republish
        self.next_id = registry.newest
        self._requests: dict[tuple[str, str], Future[list[str]]] = {}

    def submit(self, spec: Submittable, user: str = "", request: str = "", environment: RuntimeEnv | None = None) -> list[str]:
        """Submit a job (or an array of them); the ids. The same request of the same user again is answered alike, and does nothing.

        `environment` is its runtime environment as the runner has packed it.
        """
        future: Future[list[str]] = Future()
        entered: list[Job] = []

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            known = self._requests.get((user, request)) if request else None
            if request and (user, request) in self.registry.requests:
                future.set_result(list(self.registry.requests[(user, request)]))
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
                    self.registry.enter(job)
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
        number, registry = str(self.next_id), self.registry
        launches = [replace(launch, runtime_env=environment) for launch in spec.launches(number)] if environment else spec.launches(number)
        array = launches[0].array == number
        names = [f"{number}_{launch.array_index}" for launch in launches] if array else [number]
        first = spec.first()
        shown = first.to_json()
        jobs = [
            Job(name, {**shown, "index": launch.array_index} if "index" in shown else shown, launch, user, request, at)
            for name, launch in zip(names, launches, strict=True)
        ]
        submit = self._completed(first.to_submit(names[0], at), jobs[0])
        unknown = [other for other, _ in launches[0].after if other not in registry]
        if unknown:
            raise NotFoundError(
                f"no job '{unknown[0]}'", where="after", fix=near(unknown[0], [one.id for one in registry if one.user == user])
            )
        asked = {key: submit.job[key] for key in ("gpus", "min_gpus", "max_gpus", "priority", "estimate") if key in submit.job}
        waits, inside = {"dependency"} if registry.waits_for_others(jobs[0]) else set(), launches[0].parallel or len(jobs)
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
        guess = self.registry.typical_seconds(job.user, str(job.spec.get("name", "")))
        guess = job.launch.time_limit if math.isnan(guess) else guess
        return replace(value, job={**value.job, "estimate": guess}) if math.isfinite(guess) and guess > 0 else value

    def request(self, ids: Sequence[str], request: Action, user: str, gpus: int, min_gpus: int, max_gpus: int) -> None:
        """Cancel, hold, release, requeue or resize jobs: all of them, or none if one cannot be."""
        future: Future[None] = Future()

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            for name in ids:
                if name not in self.registry:
                    raise NotFoundError(f"no job '{name}'", where=request.value, fix=near(name, self.registry.jobs))
                self._check_not_over(self.registry[name], request)
            event = {"time": at, "event": request.value, "user": user}
            received, notes = list[str](), list[Entry]()
            for name in ids:
                if request is Action.SAVE:
                    _may_save(self.registry[name])
            for name in ids:
                job = self.registry[name]
                if self.endings.requested(job, request):
                    received.append(name)
                notes += [Entry("job", job.record()), Entry("event", {**event, "job": name})]
            over = {name for name in ids if self._is_over(self.registry[name])}
            again = [self._again(self.registry[name], at) for name in ids if name in over]
            there = [name for name in received if name not in over]
            return [*again, *JobRequest.of(at, request, there, gpus, min_gpus, max_gpus)], notes

        def done(error: BaseException | None) -> None:
            if request is Action.REQUEUE and error is None:
                back = [job for job in map(self.registry.__getitem__, ids) if job.ended]
                for job in back:
                    job.state, job.reason, job.finished = "pending", "requeued", math.nan  # what waits for it waits again
                self.observer.submitted(back)
            if error is None:
                self.republish()  # whoever has the answer and asks for a forecast does not get one from before
            settle(future, error, None)

        self.thread.post(Message((), done, open_, alone=True))
        self.thread.wait(future)

    def change(self, ids: Sequence[str], changes: Mapping[str, Any], user: str = "") -> None:
        """Change what is given (name, priority, queue, time limit, estimate) of all of these jobs, or of none if one cannot be changed.

        The journal and the registry change together, and the next view shows it.
        """
        if not changes:
            raise UsageError("nothing is to be changed", where="set", fix="give --priority, --queue, --name, --time-limit or --estimate")
        future: Future[None] = Future()
        changed: list[tuple[Job, JobSpec]] = []

        def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
            changed.extend(_changed(self.registry, id, changes) for id in ids)
            inputs, entries = self.queue_for(changed[0][1].queue, user, at) if "queue" in changes else ((), ())
            records = [Entry("job", _plain({"id": job.id, **_facts(job, new)})) for job, new in changed]
            about = [{"time": at, "job": job.id, "event": "set", "user": user, "changes": dict(changes)} for job, _ in changed]
            inputs = [*inputs, *(_input(job, new, changes, at) for job, new in changed)]
            return inputs, [*entries, *records, *(Entry("event", one) for one in about)]

        def done(error: BaseException | None) -> None:
            if error is None:
                for job, new in changed:
                    facts = _facts(job, new)
                    job.spec, job.launch, job.asked = facts["spec"], facts["launch"], facts["asked"]
                    self.endings.limit_changed(job)
            settle(future, error, None)

        def show() -> None:
            for id in ids:
                self.observer.touch(self.registry[id])
            self.republish()

        self.thread.post(Message((), done, open_, alone=True))
        self.thread.wait(future)
        self.thread.ask(show)

    def _is_over(self, job: Job) -> bool:
        """Whether it has ended: by the registry, which may be a step behind, or by the engine, which forgets those that have."""
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


def _changed(registry: JobRegistry, id: str, changes: Mapping[str, Any]) -> tuple[Job, JobSpec]:
    """A job and its specification with the changes; refused where it cannot be changed so."""
    if id not in registry:
        raise NotFoundError(f"no job '{id}'", where="set", fix=near(id, registry.jobs))
    job = registry[id]
    if job.ended:
        raise RefusedError(f"job '{id}' has ended: it {job.state}", where="set", fix="submit it again")
    if "queue" in changes and job.state not in ("pending", "held"):
        raise RefusedError(f"job '{id}' is {job.state}: only one that waits changes its queue", where="set", fix="requeue it first")
    return job, spec_of(_changed_spec(job.spec, changes))


def _changed_spec(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    found = {**spec, **{key: value for key, value in changes.items() if key != "time_limit"}}
    if "time_limit" in changes:
        found["limits"] = {**dict(spec.get("limits", {})), "time": changes["time_limit"]}
    return found


def _facts(job: Job, new: JobSpec) -> dict[str, Any]:
    """The registry's fields for a job with that specification; its place in an array stays."""
    values = new.to_submit(job.id, job.submitted).job
    asked = {
        **job.asked,
        "priority": float(values.get("priority", 0.0)),
        **({"estimate": values["estimate"]} if "estimate" in values else {}),
    }
    launch = replace(job.launch, time_limit=new.launch().time_limit)
    return {"spec": new.to_json(), "launch": launch, "asked": asked, "name": new.name}


def _input(job: Job, new: JobSpec, changes: Mapping[str, Any], at: float) -> SetJob:
    """The engine's input for this change: a time limit is the estimate of a job that has no other."""
    values = new.to_submit(job.id, at).job
    estimate = values.get("estimate") if {"estimate", "time_limit"} & set(changes) else None
    return SetJob(
        at, job.id,
        float(values.get("priority", 0.0)) if "priority" in changes else None,
        str(values.get("queue", "")) if "queue" in changes else None,
        estimate if estimate is not None and math.isfinite(estimate) and estimate != job.asked.get("estimate") else None,
    )  # fmt: skip


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    return {**record, "launch": record["launch"].to_json()}


# Queues that jobs name: known, created on demand, or refused.


def made_for(tree: Mapping[str, Queue], unknown: str, queue: str, user: str, at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
    """What enters before a job of this queue: nothing where the tree has the queue; else the queue, or the job is refused."""
    known = known_names(tree)
    if queue in known:
        return (), ()
    if unknown == "refuse":
        names = near(queue, known - {""}) if len(known) > 1 else "there is none yet"
        raise NotFoundError(f"no queue '{queue}'", where="queue", fix=f"{names}; an operator makes one: gantline queue set {queue}")
    event = {"time": at, "event": "queue-created", "queue": queue, "user": user}
    return [SetQueue(at, queue)], [Entry("queue", {"name": queue}), Entry("event", event)]


# Windows of a live service: their devices are chosen before anything is stored, and are the answer to the request.


def take_in(thread: LoopThread, value: Reserve | Unreserve) -> AdvanceWindow:
    """Let the input enter; the window that it is about, with its name and the places that it has."""
    future: Future[AdvanceWindow] = Future()
    found: list[AdvanceWindow] = []

    def open_(at: float) -> tuple[Sequence[Input], Sequence[Entry]]:
        found.append(thread.loop.engine.windows.check(replace(value, time=at)))
        return [Reserve(at, found[0]) if isinstance(value, Reserve) else value], []

    thread.post(Message((), lambda error: settle(future, error, found[0] if found else None), open_, alone=True))
    return thread.wait(future)


# Jobs that a runner has found in its engine: submitted, resized and cancelled as their objects say.


class SubmittedExternalJobs(ExternalJobs):
    """Those of one scheduler. May be called from any thread."""

    def __init__(self, requests: Requests, registry: JobRegistry) -> None:
        self._requests, self._registry = requests, registry

    def submit(self, spec: Submittable, user: str) -> str:
        return self._requests.submit(spec, user)[0]

    def cancel(self, job: str) -> None:
        with contextlib.suppress(RefusedError, NotFoundError):
            self._requests.request([job], Action.CANCEL, "", 0, 0, 0)

    def resize(self, job: str, gpus: int, least: int, most: int) -> None:
        self._requests.request([job], Action.RESIZE, "", gpus, least, most)

    def is_over(self, job: str) -> bool:
        return job not in self._registry or self._registry[job].ended

    def present(self) -> Mapping[str, str]:
        return {job.id: job.launch.object for job in self._registry if job.launch.object and not job.ended}
