"""All jobs as users see them: what was submitted, what has become of it, and what it still waits for besides devices.

The engine has rows, devices and work. This registry has the rest: commands, users, retries, dependencies, arrays, exit codes. It belongs to
the scheduler's thread; others read the view that is made of it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gantline.core.phases import Phase
from gantline.engine.executor import Can
from gantline.live.jobs.launch import Launch

#: the name of each engine phase in output for people
STATES = {
    Phase.FUTURE: "pending", Phase.HELD: "held", Phase.PENDING: "pending", Phase.STARTING: "starting", Phase.RUNNING: "running",
    Phase.CHECKPOINTING: "preempting", Phase.RESIZING: "resizing", Phase.STOPPING: "preempting", Phase.COMPLETED: "succeeded",
    Phase.FAILED: "failed", Phase.CANCELLED: "cancelled", Phase.REJECTED: "rejected",
}  # fmt: skip
ENDED = frozenset({"succeeded", "failed", "cancelled", "rejected", "timeout"})
#: why a job is held although neither a policy nor a user holds it
HOLDS = {
    "held": "is held until it is released",
    "dependency": "waits for another job",
    "array-limit": "waits until fewer members of its array run",
    "backoff": "failed, and is tried again in a while",
    "account": "waits until its user has an account to run jobs as (gantline user add, or gantline up --run-as service)",
}
#: what must become of a job that another waits for
MUST = {"ok": "succeed", "failed": "fail", "ended": "end", "started": "start"}
#: why a job has ended other than by itself
ENDS = {
    "exit-code": "ended with an error, and may not be tried again",
    "time-limit": "ran longer than it may",
    "dependency-failed": "waits for a job that did not start or end as it had to",
    "lost": "its processes were killed too often by something outside",
}
_LONGEST = 300.0  # seconds of back-off
_NAMES = 10_000  # job names whose durations are kept, the most recent ones
_LOST_MOST = 10  # incarnations that may be killed from outside


@dataclass
class Job:
    """One job."""

    id: str
    spec: Mapping[str, Any]
    launch: Launch
    user: str = ""
    request: str = ""
    submitted: float = 0.0
    state: str = "pending"
    reason: str = ""
    why: str = ""
    holds: set[str] = field(default_factory=set)
    failures: int = 0  # exits with an error that count against its retries
    lost: int = 0  # incarnations that were killed from outside
    ended_epoch: int = -1  # the newest epoch whose end has been processed
    exit_code: int | None = None
    lines: tuple[str, ...] = ()  # the last ones of its output, when it failed
    started: float = math.nan
    finished: float = math.nan
    release_at: float = math.nan  # when its back-off is over
    saved: float = math.nan  # work that it has reported as saved
    ending: str = ""  # one of ENDS, once that is decided
    progress: dict[str, Any] = field(default_factory=dict)  # as it last reported it
    asked: dict[str, float] = field(default_factory=dict)  # sizes and priority, as it was submitted
    resizes: int = 0  # how often it went on with another number of devices
    served: float = 0.0  # seconds it had run when it ended
    saves_asked: int = 0  # how often it was asked to save and go on
    saves_done: int = 0
    leaving: bool = False  # its loss has ended it, and its processes still save; known again after a restart

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def is_estimated(self) -> bool:
        """Whether its duration can be estimated: by its specification or similar jobs, or because it reports its progress."""
        return "estimate" in self.asked or "total" in self.progress

    @property
    def saves_on_demand(self) -> bool:
        """Whether it can save and go on: by a signal that it names, or because it reports what it saves and receives the answers."""
        return Can.SAVE in self.launch.can() or "saved" in self.progress

    def record(self) -> dict[str, Any]:
        """The fields that can change, as plain JSON."""
        numbers = {name: getattr(self, name) for name in ("started", "finished", "release_at", "saved")}
        plain = {name: None if math.isnan(value) else value for name, value in numbers.items()}
        return {
            "id": self.id, "state": self.state, "reason": self.reason, "why": self.why, "holds": sorted(self.holds),
            "failures": self.failures, "lost": self.lost, "ended_epoch": self.ended_epoch, "exit_code": self.exit_code,
            "lines": list(self.lines), "ending": self.ending, "progress": dict(self.progress), "served": self.served,
            "resizes": self.resizes, **plain,
        }  # fmt: skip

    def first_record(self, head: Job | None = None) -> dict[str, Any]:
        """The whole record; for a job of an array, only what differs from its first job, `head`."""
        if head is not None and head is not self:
            own = {"command": list(self.launch.command)} if self.launch.command != head.launch.command else {}
            fields = {"like": head.id, "index": self.launch.array_index, "user": self.user, **own}
            return {"id": self.id, **fields, "state": self.state, "reason": self.reason, "holds": sorted(self.holds)}
        about = {
            "spec": dict(self.spec),
            "launch": self.launch.to_json(),
            "asked": self.asked,
            "user": self.user,
            "request": self.request,
            "submitted": self.submitted,
            "name": str(self.spec.get("name", "")),
        }
        return {**({} if head is None else {"common": about}), **about, **self.record()}

    @staticmethod
    def from_record(value: Mapping[str, Any]) -> Job:
        found = Job(str(value["id"]), value["spec"], Launch.from_json(value["launch"]))
        for name in (
            "user",
            "request",
            "submitted",
            "state",
            "reason",
            "why",
            "failures",
            "lost",
            "ended_epoch",
            "exit_code",
            "ending",
            "asked",
            "served",
            "resizes",
        ):
            if name in value:
                setattr(found, name, value[name])
        for name in ("started", "finished", "release_at", "saved"):
            given = value.get(name)
            setattr(found, name, math.nan if given is None else float(given))
        found.holds, found.lines, found.progress = (
            set(value.get("holds", ())),
            tuple(value.get("lines", ())),
            dict(value.get("progress", {})),
        )
        return found

    def has_failed(self, exit_code: int | None, lines: tuple[str, ...], now: float) -> bool:
        """An incarnation ended with an error; whether it may be tried again, from `release_at` on."""
        self.exit_code, self.lines = exit_code, lines
        if exit_code is None:
            self.lost += 1
            again, tries = self.lost <= _LOST_MOST, self.lost
        else:
            self.failures += 1
            again, tries = self.failures <= self.launch.retries, self.failures
        if again:
            self.holds.add("backoff")
            self.release_at = now + min(_LONGEST, self.launch.backoff * 2.0 ** min(tries - 1, 30))
        else:
            self.ending = "lost" if exit_code is None else "exit-code"
        return again


class JobRegistry:
    """All jobs by id."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = (), newest: int = 0) -> None:
        self.jobs: dict[str, Job] = {}
        self.requests: dict[tuple[str, str], list[str]] = {}
        self.arrays: dict[str, list[str]] = {}
        self.waiting_for: dict[str, set[str]] = {}  # job -> those that wait for it
        self.newest = newest  # the highest number that was given
        self._took: dict[tuple[str, str], deque[float]] = {}
        self.ratios: deque[float] = deque(maxlen=200)  # of the last ones that succeeded: how long they ran over what was expected
        for record in records:
            job = Job.from_record(record)
            self.enter(job)
            if job.state == "succeeded":
                self.took(job)

    def __getitem__(self, name: str) -> Job:
        return self.jobs[name]

    def __contains__(self, name: str) -> bool:
        return name in self.jobs

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs.values())

    def to_run(self) -> list[Launch]:
        """How jobs are run that have not ended; from any thread."""
        return [job.launch for job in list(self.jobs.values()) if not job.ended]

    def enter(self, job: Job) -> None:
        self.jobs[job.id] = job
        self.newest = max(self.newest, int(job.id.partition("_")[0]))
        if job.request:
            self.requests.setdefault((job.user, job.request), []).append(job.id)
        if job.launch.array:
            self.arrays.setdefault(job.launch.array, []).append(job.id)
        for other, _ in job.launch.after:
            self.waiting_for.setdefault(other, set()).add(job.id)

    def forget(self, ids: Iterable[str]) -> None:
        """Jobs have left for the archive, arrays whole; nothing waits for them."""
        for id in ids:
            job = self.jobs.pop(id)
            self.requests.pop((job.user, job.request), None)
            self.arrays.pop(job.launch.array, None)
            self.waiting_for.pop(id, None)
            for other, _ in job.launch.after:
                self.waiting_for.get(other, set()).discard(id)

    def waits_for_others(self, job: Job) -> str:
        """``dependency`` while it must wait, ``dependency-failed`` when it waits in vain, nothing when it may run."""
        verdict = ""
        for other, when in job.launch.after:
            known = self.jobs.get(other)
            if when == "started" and known is not None and not math.isnan(known.started):
                continue
            if known is None or not known.ended or known.leaving:
                verdict = "dependency"
            elif (
                when == "started"
                or (when == "ok" and known.state != "succeeded")
                or (when == "failed" and known.state not in ("failed", "timeout"))
            ):
                return "dependency-failed"
        return verdict

    def in_vain(self, job: Job) -> str:
        """Which job did not become what another waited for."""
        for other, when in job.launch.after:
            known = self.jobs.get(other)
            if known is not None and known.ended and when in MUST and (when != "started" or math.isnan(known.started)):
                bad = {"ok": known.state != "succeeded", "failed": known.state not in ("failed", "timeout"), "started": True}
                if bad.get(when, False):
                    was = known.state if known.state in ("failed", "succeeded") else f"was {known.state}"
                    return f"waited for job {other} to {MUST[when]}, which {was}"
        return ""

    def slots_of(self, array: str) -> list[str]:
        """Members of an array that wait only for fewer of it to run, and now may."""
        names = self.arrays.get(array, ())
        if not names or not self.jobs[names[0]].launch.parallel:
            return []
        members = [self.jobs[name] for name in names]
        inside = sum(1 for job in members if not job.ended and "array-limit" not in job.holds)
        kept = [job.id for job in members if "array-limit" in job.holds and not job.ended]
        return kept[: max(0, members[0].launch.parallel - inside)]

    def took(self, job: Job) -> None:
        """A job has succeeded: others of its user and name will likely take as long, and estimates are likely as far off."""
        if job.asked.get("estimate", 0.0) > 0.0 and job.served > 0.0:
            self.ratios.append(job.served / job.asked["estimate"])
        if job.finished >= job.started:
            whose = (job.user, str(job.spec.get("name", "")))
            self._took[whose] = took = self._took.pop(whose, None) or deque(maxlen=25)  # now the most recent name
            took.append(job.finished - job.started)
            if len(self._took) > _NAMES:
                del self._took[next(iter(self._took))]

    def typical_seconds(self, user: str, name: str) -> float:
        """Seconds that jobs of that user and name took, the median of the last ones; NaN: none has succeeded yet."""
        known = sorted(self._took.get((user, name), ()))
        return known[len(known) // 2] if known else math.nan
