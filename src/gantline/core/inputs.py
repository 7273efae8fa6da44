"""What enters from outside, as values: jobs that are submitted and what people want of them, nodes that come and go, reports of executors.

`Engine.apply` is the only way in. Each value says when it happened, and each is plain JSON: the list of them is the journal of a run, and
folding it again gives the run again. Nodes that fail, drain, return or join during a simulation are such values: ``time,node,event``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from gantline.core import memory as memories
from gantline.core.cluster import Cluster, Node
from gantline.core.cluster_spec import decode_node
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.json_reader import Reader, decode_record, encode_record
from gantline.core.windows import AdvanceWindow

KINDS = ("down", "up", "drain", "join")


@dataclass(frozen=True)
class NodeEvent:
    """At `time` something happens to a node: it goes down (work since the last checkpoint is lost), drains, comes up or joins.

    ``node0:3`` names one of its devices, which can drain and come up.
    """

    time: float
    name: str
    kind: str
    node: Node | None = None  # for "join": the node itself; one of a name that went down takes its place
    reported: bool = False  # the runner of a service has noticed it; else an operator says so, or a file

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"'{self.kind}' is not a node event", where=f"node event at t={self.time:g}", fix="use " + ", ".join(KINDS))
        if self.kind == "join" and self.node is None:
            raise UsageError(f"'{self.name}' joins, but nothing is known about it", fix="give the node itself")

    def device(self, cluster: Cluster) -> int | None:
        """The number of the device that is meant; None: the node is."""
        names = [node.name for node in cluster.nodes]
        name, sign, place = self.name.rpartition(":")
        if self.name in names or not sign or name not in names or not place.isdigit():
            return None
        number = names.index(name)
        if int(place) >= cluster.nodes[number].gpus:
            raise NotFoundError(
                f"no device '{self.name}'", where="node events", fix=f"{name} has devices 0 to {cluster.nodes[number].gpus - 1}"
            )
        if self.kind not in ("drain", "up"):
            raise UsageError(f"a device cannot go '{self.kind}'", where=self.name, fix="use drain or up, or name the node")
        return int(cluster.first_device[number]) + int(place)

    def find(self, cluster: Cluster) -> int:
        """The number of the node."""
        for number, node in enumerate(cluster.nodes):
            if node.name == self.name:
                return number
        raise NotFoundError(f"no node '{self.name}'", where="node events", fix=near(self.name, [n.name for n in cluster.nodes]))


@dataclass(frozen=True, slots=True)
class Submit:
    """A job arrives. `job` is written as in the `jobs` of a snapshot (docs/snapshots.md); `work` is its true amount, where it is known.

    An array is one input: `ids` names its jobs, in order, and `job` says what they have in common.
    """

    time: float
    job: Mapping[str, Any]
    work: float | None = None
    ids: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The ids of all jobs that it brings."""
        return self.ids or (str(self.job.get("id", "")),)


class Action(Enum):
    """What is requested of a job that is present."""

    CANCEL = "cancel"  # it ends; what it holds is given back
    HOLD = "hold"  # it is stopped, saved, and kept out until it is released
    RELEASE = "release"
    REQUEUE = "requeue"  # it is stopped and saved, or comes back after it failed or was cancelled, and waits like any other
    RESIZE = "resize"  # it asks for another number of devices from now on
    SAVE = "save"  # it saves its work and goes on
    FAIL = "fail"  # it ends as one that has failed: it crashed too often, or ran past its limit
    FINISH = "finish"  # it is stopped, saved, and has completed: its loss says that it need not go on


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Something is asked of the job of that id, and alike of `others`."""

    time: float
    action: Action
    job: str
    gpus: int = 0  # RESIZE: what it asks for
    min_gpus: int = 0  # RESIZE: zero: as `gpus`
    max_gpus: int = 0
    others: tuple[str, ...] = ()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The ids of all jobs that it is about."""
        return (self.job, *self.others)

    @staticmethod
    def of(time: float, action: Action, jobs: Sequence[str], gpus: int = 0, min_gpus: int = 0, max_gpus: int = 0) -> list[JobRequest]:
        """One input for all of them; none where there are none."""
        return [JobRequest(time, action, jobs[0], gpus, min_gpus, max_gpus, tuple(jobs[1:]))] if jobs else []


@dataclass(frozen=True, slots=True)
class SetJob:
    """From now on a job has another priority, queue or estimate; None: as before."""

    time: float
    job: str
    priority: float | None = None
    queue: str | None = None
    estimate: float | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """From now on another policy decides; it begins without memory."""

    time: float
    policy: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetQueue:
    """From now on a queue has this quota, this weight and this borrowing limit."""

    time: float
    name: str
    weight: float = 1.0
    quota: float = math.inf
    borrow: float = 0.0
    drop: bool = False  # there is no such queue any more; its jobs stay


@dataclass(frozen=True, slots=True)
class Reserve:
    """Devices are kept free for a window, from now until it ends."""

    time: float
    window: AdvanceWindow


@dataclass(frozen=True, slots=True)
class Unreserve:
    """The window of that name is given up, or ended before its time."""

    time: float
    name: str


class News(Enum):
    """What a report says of one grant."""

    STARTED = "started"  # it runs
    SAVED = "saved"  # it has saved its work, because it was asked to or told to stop; its devices are not free yet
    SUSPENDED = "suspended"  # it is there, and stands still
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    PROGRESS = "progress"  # it runs, and reports how far it is


class Fault(Enum):
    """Whose fault it is that a gang was lost."""

    NODE = "node"  # a node of its is gone: the job did nothing wrong, and its retries are untouched
    ENGINE = "engine"  # what runs it has lost it: it is tried again, a number of times
    JOB = "job"  # it ended itself


@dataclass(frozen=True, slots=True)
class Report:
    """What an executor says of one grant."""

    news: News
    row: int
    epoch: int
    time: float  # when that happened
    done: float = 0.0  # work done: where it resumed, when it runs; what is saved, when it reports progress, has stopped or failed
    devices: tuple[int, ...] = ()  # where it is, if it still is anywhere: needed when no record of its order exists
    total: float = math.nan  # PROGRESS: how much work it seems to be in all, where that is known
    metrics: Mapping[str, float] = field(default_factory=dict)  # PROGRESS: what it has measured, by name
    revision: int = 0  # of the newest order that it knows of
    lost: Fault | None = None  # FAILED, STOPPED: whose fault that is; None: the job's, or what was asked for
    actual: tuple[str, ...] = ()  # what the engine beneath calls the devices that it picked, in the order of ranks


Input = Submit | JobRequest | SetJob | NodeEvent | Use | SetQueue | Reserve | Unreserve | Report

_ACTIONS = {action.value: action for action in Action}
_KINDS_OF_INPUT: dict[str, Any] = {
    "submit": Submit, "set": SetJob, "node": NodeEvent, "use": Use, "queue": SetQueue, "reserve": Reserve, "unreserve": Unreserve,
    "report": Report,
}  # fmt: skip
_WORDS = {kind: word for word, kind in _KINDS_OF_INPUT.items()}


def encode_input(value: Input) -> dict[str, Any]:
    """The input as values that JSON can hold."""
    found = encode_record(value)
    if isinstance(value, Use) and value.settings:
        found["settings"] = memories.plain(dict(value.settings))
    word = found.pop("action") if isinstance(value, JobRequest) else _WORDS[type(value)]
    return {"input": word, "time": found.pop("time"), **found}


def decode_input(value: Mapping[str, Any]) -> Input:
    """The input that `encode_input` wrote, or a person."""
    reader = Reader(value, "input")
    kind, known = reader.text("input"), dict[str, Any](time=reader.number("time", 0.0))
    if kind in _ACTIONS:
        return decode_record(JobRequest, reader, "input", action=_ACTIONS[kind], others=_names(reader, "others"), **known)
    if kind not in _KINDS_OF_INPUT:
        raise UsageError(f"no input '{kind}'", where=reader.at("input"), fix=near(kind, (*_ACTIONS, *_KINDS_OF_INPUT)))
    if kind == "submit":
        known |= {"job": dict(reader.raw("job") or {}), "ids": _names(reader, "ids")}
    if kind == "node" and "node" in reader:
        known["node"] = decode_node(Reader(reader.raw("node"), reader.at("node")), 0)
    if kind == "use":
        known["settings"] = memories.restore(reader.raw("settings", {}))
    if kind == "report":
        known |= {"news": _member(reader, "news", News, "news"), "actual": _names(reader, "actual")}
        known |= {"row": reader.whole("row", 0), "epoch": reader.whole("epoch", 0)}
        if reader.text("lost", ""):
            known["lost"] = _member(reader, "lost", Fault, "fault")
    found: Input = decode_record(_KINDS_OF_INPUT[kind], reader, "input", **known)
    return found


def _member(reader: Reader, key: str, kind: type[Enum], what: str) -> Enum:
    known = {member.value: member for member in kind}
    if (word := reader.text(key)) not in known:
        raise UsageError(f"no {what} '{word}'", where=reader.at(key), fix=near(word, known))
    return known[word]


def _names(reader: Reader, key: str) -> tuple[str, ...]:
    """A list of ids; empty where there is none."""
    found = reader.raw(key, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise UsageError("is not a list of ids", where=reader.at(key), fix='write ["3_0", "3_1"]')
    return tuple(found)
