"""Reports of running jobs, and the answers to them.

The engine counts work in seconds at speed one; a job counts in units of its own, out of a total. Its speed, in its units, gives
how much work it will have been in all. What it has saved is acknowledged only when that is in the store.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from gantline.core.columns import Job, elapsed
from gantline.core.errors import NotFoundError
from gantline.core.inputs import Action, Input, JobRequest, News, Report
from gantline.core.phases import Phase
from gantline.core.reasons import Reason, slug
from gantline.engine.ending import EndingRule
from gantline.live.jobs.amounts import rule_of
from gantline.live.runners.runner import Runner
from gantline.live.scheduler.job_registry import JobRegistry
from gantline.live.scheduler.view import JobView
from gantline.live.store.records import Entry
from gantline.live.wall_time import Live, Message

NUMBERS = ("step", "done", "total", "saved", "throughput", "batch", "loss", "gradient_square", "gradient_variance")
METRICS = ("throughput", "loss", "gradient_square", "gradient_variance")
_OFTEN = 5.0  # seconds between two reports of a job that reach the engine, unless something was saved or requested
_LEAST = 1.0  # seconds between two reports that give a speed
_LEASE = 60.0  # seconds for which an answer holds


class Progress:
    """Receives reports of jobs, from any thread."""

    def __init__(self, loop: Live, registry: JobRegistry, runner: Runner, end_by: str) -> None:
        self.loop, self.registry, self.runner = loop, registry, runner
        self.end_by = end_by  # when losses end a job that does not say so itself
        self._last: dict[str, tuple[float, float]] = {}  # job -> when a report reached the engine, what it had saved
        self._first: dict[str, tuple[int, float, float]] = {}  # job -> epoch, time and units done of the first report of that epoch
        self.losses = Losses()
        self._lock = threading.Lock()

    def received(self, name: str, shown: JobView | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """Process a report of a job (`shown` is its view); the answer says what it shall do."""
        if shown is None:
            raise NotFoundError(f"no job '{name}'", where="progress")
        epoch, values, request = _read(given)
        same = epoch < shown.epoch and self.runner.is_same_life(name, epoch)  # it goes on under another grant, or is about to
        stop = shown.stop or (epoch < shown.epoch and not same)
        if epoch == shown.epoch:
            self.runner.switched(name, epoch)
        if not stop and shown.row >= 0:
            self._pass_on(name, shown.row, shown.epoch if same else epoch, values, request, self._ends(name, epoch, values))
        job = self.registry.jobs.get(name)
        save = job is not None and job.saves_asked > job.saves_done
        return {
            "stop": stop,
            "save": save,
            "lease": _LEASE,
            "gpus": len(shown.devices) or shown.gpus,
            "batch": shown.batch,
            "epoch": epoch if same else shown.epoch,
        }

    def forget(self, name: str) -> None:
        """The job has ended."""
        self.losses.forget(name)
        with self._lock:
            self._last.pop(name, None)
            self._first.pop(name, None)

    def _ends(self, name: str, epoch: int, values: Mapping[str, float]) -> str:
        """The rule by which this report ends the job; empty: none does."""
        job, runner = self.registry.jobs.get(name), self.runner
        if job is None or "loss" not in values:
            return ""
        rule = rule_of(job.spec.get("end_by") or self.end_by)
        goes_on = self.losses.received(name, epoch, rule, values["loss"], lambda earlier: runner.is_same_life(name, earlier))
        return "" if goes_on else str(rule)

    def _pass_on(self, name: str, row: int, epoch: int, values: Mapping[str, float], request: Mapping[str, int], ends: str) -> None:
        saved, now = values.get("saved", math.nan), self.loop.clock.now()
        with self._lock:
            when, before = self._last.get(name, (-math.inf, math.nan))
            secured = not math.isnan(saved) and saved != before
            if not (secured or request or ends or now - when >= _OFTEN):
                return
            self._last[name] = (now, saved if secured else before)
        future: Future[None] = Future()

        def done(error: BaseException | None) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.loop.messages.post(Message((), done, lambda at: self._open(name, row, epoch, values, request, ends, at)))
        if secured:
            try:
                future.result(30.0)  # it may rely on it from now on
            except BaseException:
                with self._lock:
                    self._last.pop(name, None)
                raise

    def _open(
        self, name: str, row: int, epoch: int, values: Mapping[str, float], request: Mapping[str, int], ends: str, at: float
    ) -> tuple[Sequence[Input], Sequence[Entry]]:
        t = self.loop.state.tables
        job = self.registry[name]
        if int(t.I[Job.EPOCH, row]) != epoch or int(t.I[Job.PHASE, row]) != Phase.RUNNING:
            return (), ()
        job.progress = {**job.progress, **{key: value for key, value in values.items() if math.isfinite(value)}, "time": at}
        done, total = values.get("done", math.nan), values.get("total", math.nan)
        work = float(t.F[Job.DONE, row]) + float(t.F[Job.RATE, row]) * elapsed(t.F, t.I, row, at)
        whole = self._whole(
            name, epoch, at, work, float(t.F[Job.RATE, row]), done, total, is_known=0.0 < float(t.F[Job.ESTIMATE, row]) < math.inf
        )
        saved = values.get("saved", math.nan)
        asked = False
        if not math.isnan(saved) and done > 0 and row not in t.trials:
            job.saved = min(work, work * saved / done)
            asked = job.saves_asked > job.saves_done
            job.saves_done = job.saves_asked
        metrics = {key: values[key] for key in METRICS if key in values}
        safe = 0.0 if math.isnan(job.saved) else job.saved
        found: list[Input] = [Report(News.PROGRESS, row, epoch, at, safe, (), whole, metrics)]
        if asked:
            live = self.loop.reconciler.live.get(row)
            found.append(Report(News.SAVED, row, epoch, at, safe, revision=live.revision if live is not None else 0))
        gpus = int(request.get("gpus", 0))
        sizes = (gpus, int(request.get("min_gpus", gpus)), int(request.get("max_gpus", gpus)))
        if gpus and sizes != (int(t.I[Job.GPUS, row]), int(t.I[Job.MIN_GPUS, row]), int(t.I[Job.MAX_GPUS, row])):
            found.append(JobRequest(at, Action.RESIZE, name, *sizes))
        notes = [Entry("job", job.record())]
        if ends and not job.leaving:
            job.leaving = True
            found.append(JobRequest(at, Action.FINISH, name))
            text = f"{ends}: its last loss is {values['loss']:.6g}"
            notes.append(Entry("event", {"time": at, "job": name, "event": Action.FINISH.value, "reason": slug(Reason.LOSS), "why": text}))
        return found, notes

    def _whole(self, name: str, epoch: int, at: float, work: float, rate: float, done: float, total: float, *, is_known: bool) -> float:
        """How much work the job will have been in all; NaN where this report does not show it.

        Between two reports of one incarnation the job did nothing but train. Its start took an unknown time: a first report
        shortly after it would make the job ten times as long or as short. It counts only where the user gave no estimate.
        """
        if not (done > 0 and total > 0):
            return math.nan
        since, then, before = self._first.setdefault(name, (epoch, at, done))
        if since != epoch:
            since, then, before = self._first[name] = (epoch, at, done)
        if at - then >= _LEAST and done > before:
            return work + rate * max(0.0, total - done) * (at - then) / (done - before)
        return math.nan if is_known else work * total / done


def _read(given: Mapping[str, Any]) -> tuple[int, dict[str, float], dict[str, int]]:
    """The epoch, the numbers and the request of a report; the route has checked what they are."""
    values = {key: float(given[key]) for key in NUMBERS if given.get(key) is not None}
    return given["epoch"], values, given.get("request") or {}


# Which running jobs their losses end: what each has reported since it was last started, compared with its rule
# (`core.ending`).


class Losses:
    """The newest losses of every job that has a rule, from any thread.

    They begin anew with each start of a job: one that goes on from an older checkpoint reports again what it had reached before, and
    would seem not to get on. A change of its devices while it runs is no start.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, deque[float]]] = {}  # job -> the epoch of the newest one, and the losses
        self._lock = threading.Lock()

    def received(self, job: str, epoch: int, rule: EndingRule, loss: float, is_same_life: Callable[[int], bool]) -> bool:
        """A job has reported a loss; whether it goes on. `is_same_life` says whether an earlier epoch is one of the present incarnation."""
        if rule.kind == "never" or not math.isfinite(loss):
            return True
        with self._lock:
            last, losses = self._kept.get(job, (epoch, None))
            if losses is None or not (last == epoch or is_same_life(last)):
                losses = deque(maxlen=rule.window + 1)  # a plateau is counted from the report just before its window
            losses.append(loss)
            self._kept[job] = epoch, losses
            return not rule.ends(losses)

    def forget(self, job: str) -> None:
        """The job has ended."""
        with self._lock:
            self._kept.pop(job, None)
