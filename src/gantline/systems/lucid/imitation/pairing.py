"""The main phase of Lucid's simulator: jobs by predicted GPU time, two on the same GPUs where scores and memory allow."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from gantline.systems.lucid.imitation.jobs import GPUS, Held, LucidJob, LucidOutcome, RateChange, VirtualCluster, give_back
from gantline.systems.lucid.imitation.profiling import NodeLender, SharingSwitch
from gantline.systems.lucid.traces import FIRST, Configuration, LucidProfiles

# What is repaired of the original's slips, by word: `guest`, a guest goes at full speed once its host has left, and may host another job;
# `loan`, a node comes back only if one was lent; `profile`, a job joins the queue when its profile is known, not before; `second`, a job
# ends with its work, not a second later.
Repairs = Collection[str]


# How much work is left of a job whose rate changes, second by second as the original subtracts it.


class WorkLeft:
    """What is left after each second since the rate last changed. Doubles are subtracted one after the other: rounding shows in the end."""

    def __init__(self, left: float, since: int, rate: float, after: int) -> None:
        """`after`: seconds from the end of the work to the end of the job."""
        self._after = after
        self._set(left, since, rate)

    def at(self, now: int) -> float:
        """What is left after `now`."""
        steps = now - self._since
        return self._left - steps if self._path is None else float(self._path[steps])

    def change(self, rate: float, now: int) -> None:
        """Go on at this rate from the next second on."""
        self._set(self.at(now), now, rate)

    def _set(self, left: float, since: int, rate: float) -> None:
        self._left, self._since = left, since
        if rate == 1.0:  # exact: the result has no more digits than what is subtracted from
            self._path, steps = None, max(math.ceil(left), 0)
        else:
            each = np.full(math.ceil(max(left, 0.0) / rate) + 3, rate)
            each[0] = left
            self._path = np.subtract.accumulate(each)
            steps = int(np.argmax(self._path <= 0.0))
        self.end = since + steps + self._after
        """When the job ends at this rate."""


# The main phase of Lucid's simulator: jobs by predicted GPU time, two on the same GPUs where scores and memory allow.

_DEVICE_MEMORY = 24_576.0  # MB
_MOST_SCORE = 2
_MOST_PRIORITY = 2  # times that of the host


class PairingJob(NamedTuple):
    """What the main phase knows of a job."""

    job: LucidJob
    priority: float
    config: Configuration
    enters: int  # the queue of the main phase


@dataclass(eq=False)
class PairedJob:
    """A job that runs. `number` is its place in the order of starts; pairs hold the GPUs together."""

    asked: PairingJob
    number: int
    held: Held
    work: WorkLeft
    guest: bool = False  # it joined another job
    mate: PairedJob | None = None

    @property
    def row(self) -> int:
        return self.asked.job.row


class PairingPhase:
    """One virtual cluster in the main phase."""

    def __init__(
        self, cluster: VirtualCluster, asked: Sequence[PairingJob], outcomes: Sequence[LucidOutcome], profiles: LucidProfiles,
        sharing: SharingSwitch, lender: NodeLender | None, repairs: Repairs,
    ) -> None:  # fmt: skip
        self._nodes, self._outcomes, self._profiles, self._lender = cluster.nodes, outcomes, profiles, lender
        self._sharing, self._now = sharing, FIRST
        self._coming = sorted(asked, key=lambda one: one.enters)[::-1] if "profile" in repairs else list(reversed(asked))
        self._queue: list[PairingJob] = []
        self._running: dict[int, PairedJob] = {}  # by number
        self._started, self._repairs, self._after = 0, repairs, 0 if "second" in repairs else 1

    def run(self) -> int:
        """Run until nothing is left to happen; how many passes that took."""
        passes, again = 0, inf
        while self._coming or self._queue or self._running:
            now = self._next_instant(again)
            if now == inf:
                break
            again = inf
            self._advance(int(now))
            self._pass(int(now))
            passes += 1
            if self._lender is not None and self._lender.act(int(now), self._nodes):
                again = now + 1
        return passes

    def _next_instant(self, again: float) -> float:
        arrival = self._coming[-1].enters if self._coming else inf
        end = min((one.work.end for one in self._running.values()), default=inf)
        change = inf if self._lender is None else self._lender.next_change()
        switch = self._sharing.next_switch(self._now) if self._queue else inf
        return min(arrival, end, change, switch, again)

    def _advance(self, now: int) -> None:
        """End what is done, in the order of starts, and let new jobs in."""
        self._now = now
        for one in [one for one in self._running.values() if one.work.end <= now]:
            self._end(one, now)
        came = False
        while self._coming and self._coming[-1].enters <= now:
            self._queue.append(self._coming.pop())
            came = True
        if came:
            self._queue.sort(key=lambda waiting: waiting.priority)

    def _end(self, one: PairedJob, now: int) -> None:
        """A host that its guest leaves is alone again; a guest that its host leaves keeps the rate of the pair, unless that is repaired."""
        del self._running[one.number]
        found = self._outcomes[one.row]
        found.end = now
        found.ran(found.start, now, one.held)
        mate = one.mate
        if mate is None:
            give_back(one.held)
            return
        mate.mate = None
        if not mate.guest or "guest" in self._repairs:
            mate.guest = False
            mate.work.change(1.0, now)
            self._outcomes[mate.row].changes.append(RateChange(now, 1.0, ""))

    def _pass(self, now: int) -> None:
        """Start what can be started. With sharing, jobs that cannot are passed by; without, the first of them ends the pass."""
        sharing, left = self._sharing.on_at(now), []
        room = self._nodes.widest()
        for place, asked in enumerate(self._queue):
            host = self._find_host(asked) if sharing and asked.job.gpus <= GPUS else None
            if host is not None:
                self._start(asked, host.held, now, host)
                continue
            held = self._nodes.take(asked.job.gpus) if asked.job.gpus <= room or asked.job.gpus > GPUS else None
            if held is not None:
                self._start(asked, held, now)
                room = self._nodes.widest()
            elif sharing:
                left.append(asked)
            else:
                left = self._queue[place:]
                break
        self._queue = left

    def _find_host(self, asked: PairingJob) -> PairedJob | None:
        """The job that started first among those that run alone on as many GPUs and that this one may join."""
        for host in self._running.values():
            theirs = host.asked
            if (
                host.mate is None
                and not host.guest
                and theirs.job.gpus == asked.job.gpus
                and theirs.config.memory < _DEVICE_MEMORY - asked.config.memory
                and theirs.config.score + asked.config.score <= _MOST_SCORE
                and asked.priority <= _MOST_PRIORITY * theirs.priority
            ):
                return host
        return None

    def _start(self, asked: PairingJob, held: Held, now: int, host: PairedJob | None = None) -> None:
        """Start a job on GPUs of its own, or on those of its host."""
        own, theirs = (1.0, 1.0) if host is None else self._profiles.rates(asked.config, host.asked.config)
        one = PairedJob(
            asked, self._started, held, WorkLeft(float(asked.job.duration), now, own, self._after), guest=host is not None, mate=host
        )
        self._started += 1
        self._running[one.number] = one
        found = self._outcomes[one.row]
        found.start = now
        found.waited = found.profiling_wait + now - asked.enters
        if host is None:
            return
        host.mate = one
        host.work.change(theirs, now)
        found.changes.append(RateChange(now, own, host.asked.job.name))
        self._outcomes[host.row].changes.append(RateChange(now, theirs, asked.job.name))
