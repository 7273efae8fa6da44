"""Policies whose keys are written in Python, as users write them, for the tables of `core`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gantline.core.policy import OrderPolicy, Policy
from gantline.core.snapshot import Snapshot


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
