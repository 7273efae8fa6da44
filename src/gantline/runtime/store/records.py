"""Rows of the store as values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job: what was asked for, and where it stands. States are phases in lower case, reasons are slugs of the closed list."""

    id: str
    number: int
    name: str
    user: str
    spec: Mapping[str, Any]
    submitted: float
    task: int | None = None
    queue: str = ""
    state: str = "pending"
    reason: str = "arrived"
    detail: str = ""
    priority: float = 0.0
    gpus: int = 1
    min_gpus: int = 1
    max_gpus: int = 1
    started: float | None = None
    ended: float | None = None
    exit_code: int | None = None
    epoch: int = 0
    restarts: int = 0
    resizes: int = 0
    devices: list[int] = field(default_factory=list)
    progress: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the journal: an input of the engine, or what else a replay must know (which policy, which clock)."""

    number: int
    time: float
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class History:
    """A job was in this state from `time` on."""

    job: str
    time: float
    state: str
    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that people may want to know, with who did it: also the audit of requests."""

    number: int
    time: float
    kind: str
    job: str = ""
    node: str = ""
    user: str = ""
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a policy decided: after which entry of the journal, how long it took, a hash of the plan."""

    number: int
    time: float
    entry: int
    policy: str
    seconds: float
    hash: str
    body: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All of the engine after an entry of the journal; `arrays` is a NumPy archive without pickles."""

    entry: int
    time: float
    head: Mapping[str, Any]
    arrays: bytes


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was answered: the same key again gets the same answer."""

    key: str
    user: str
    digest: str
    answer: Any
    time: float = 0.0


@dataclass(frozen=True, slots=True)
class QueueRecord:
    """A queue as an operator set it; `paused`: nothing of it starts."""

    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: bool = True
    paused: bool = False


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token at rest: its hash, never itself. Times are seconds since 1970."""

    id: str
    hash: str
    user: str
    role: str
    created: float
    expires: float | None = None
    revoked: float | None = None
