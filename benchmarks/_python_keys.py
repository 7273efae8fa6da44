"""Policies whose keys are written in Python, as users write them, for the tables of `core`."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
from benchmarks._measure import History, timed

from gantline import Trace, simulate
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.snapshot import Snapshot


def undeclared(policy: Policy) -> Policy:
    """The same policy with a plan of its own, so that it is asked at every decision."""
    kind = type(policy)
    asked = {"decide": lambda self, snapshot: kind.decide(self, snapshot), "__module__": kind.__module__}
    return type(f"{kind.__name__}InPython", (kind,), asked)(**{item.name: getattr(policy, item.name) for item in fields(policy)})


class WrittenFifo(OrderPolicy):
    """First come first served as a user writes it."""

    preempt = False

    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.arrival


class WrittenSrtf(OrderPolicy):
    """The same for shortest remaining time."""

    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.remaining


class WrittenLas(OrderPolicy):
    """The same for least attained service."""

    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.attained


class WrittenTiresias(OrderPolicy):
    """The same for two queues by attained GPU-time, first started first in each."""

    def key(self, snapshot: Snapshot) -> Any:
        jobs = snapshot.jobs
        first = np.where(np.isnan(jobs.first_start), 1e11 + jobs.arrival, jobs.first_start)
        return np.searchsorted([3600.0], jobs.attained_gpu, side="right") * 1e12 + first


WRITTEN: dict[str, Policy] = {"fifo": WrittenFifo(), "srtf": WrittenSrtf(), "las": WrittenLas(), "tiresias": WrittenTiresias()}


class Unread(OrderPolicy):
    """Keys that cannot be read, because how many jobs there are decides: the policy is asked about all jobs at every decision."""

    def key(self, snapshot: Snapshot) -> Any:
        return super().key(snapshot) if len(snapshot.jobs) else np.zeros(0)


class UnreadFifo(Unread, WrittenFifo):
    """First come first served."""


class UnreadSrtf(Unread, WrittenSrtf):
    """Whatever runs only gets ahead, so its order holds until something happens; as the built-in policy says."""

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


class UnreadLas(Unread, WrittenLas):
    """Asked every round."""


class UnreadTiresias(Unread, WrittenTiresias):
    """The same, with a key that takes longer by itself."""


UNREAD: dict[str, Policy] = {"fifo": UnreadFifo(), "srtf": UnreadSrtf(), "las": UnreadLas(), "tiresias": UnreadTiresias()}


class Wfp(OrderPolicy):
    """Waiting over estimated time, cubed, times the size (Tang et al., CLUSTER 2009): all keys move all the time."""

    def key(self, snapshot: Snapshot) -> Any:
        jobs = snapshot.jobs
        return -(((snapshot.now - jobs.arrival) / jobs.estimate) ** 3) * jobs.gpus


class Unicef(OrderPolicy):
    """The same with the logarithm of the size, and without the cube."""

    def key(self, snapshot: Snapshot) -> Any:
        jobs = snapshot.jobs
        return -(snapshot.now - jobs.arrival) / (np.log2(jobs.gpus + 1.0) * jobs.estimate)


class Aged(OrderPolicy):
    """Shortest remaining time, less the time waited."""

    def key(self, snapshot: Snapshot) -> Any:
        return snapshot.jobs.remaining - snapshot.jobs.waiting


class Queues(OrderPolicy):
    """Three queues by attained GPU-time, by arrival in each."""

    def key(self, snapshot: Snapshot) -> Any:
        served = snapshot.jobs.attained_gpu
        return np.where(served < 3600, 0, np.where(served < 36000, 1, 2)) * 1e9 + snapshot.jobs.arrival


class Multifactor(OrderPolicy):
    """Priority, age up to a day, size: a weighted sum."""

    def key(self, snapshot: Snapshot) -> Any:
        jobs = snapshot.jobs
        return -(1000.0 * jobs.priority + 500.0 * np.minimum((snapshot.now - jobs.arrival) / 86400.0, 1.0) - 0.1 * jobs.gpus)


MOVING: tuple[type[OrderPolicy], ...] = (Wfp, Unicef, Aged, Queues, Multifactor)


def keys_table(trace: Trace, quick: bool, history: History) -> None:
    """Keys in Python that no declared key can say: read, against asked at every decision of the first jobs."""
    head = Trace(trace.frame.head(5_000), trace.source)
    trace = head if quick else trace
    print(f"\n# Keys in Python that move, {trace.frame.height:,} jobs, 60 s rounds; CPU seconds; beside it 5,000 jobs, read and asked")
    for kind in MOVING:
        simulate(trace.frame.head(50), "64x8", kind(), round=60)  # compile
        seconds, _, run = timed(trace, "64x8", kind(), 1 if quick else 3, round=60)
        short, _, read = timed(head, "64x8", kind(), 1, round=60)
        asked, _, told = timed(head, "64x8", undeclared(kind()), 1, round=60)
        assert read.summary["log_hash"] == told.summary["log_hash"]
        was = "" if quick else history.add(f"python key {kind.__name__.lower()}", seconds)
        each = 1e6 * seconds / run.summary["decisions"]
        print(f"{kind.__name__:<12} {seconds:6.2f} s, {each:4.1f} us a decision   {short:6.3f} {asked:6.2f} s  {was}", flush=True)
