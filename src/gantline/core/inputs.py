"""What enters from outside, as values: jobs that are submitted and what people want of them, nodes that come and go, reports of executors.

`Engine.apply` is the only way in. Each value says when it happened, and each is plain JSON: the list of them is the journal of a run, and
folding it again gives the run again. Nodes that fail, drain, return or join during a simulation are such values: ``time,node,event``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from gantline.core import memory as memories
from gantline.core.cluster import Cluster, Node
from gantline.core.cluster_json import decode_node, encode_node
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.json_reader import Reader, json_number

if TYPE_CHECKING:
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
_NEWS = {news.value: news for news in News}
_FAULTS = {fault.value: fault for fault in Fault}
_KINDS = ("submit", *_ACTIONS, "set", "node", "use", "queue", "reserve", "unreserve", "report")


def encode_input(value: Input) -> dict[str, Any]:
    """The input as values that JSON can hold."""
    head: dict[str, Any] = {"time": json_number(value.time)}
    if isinstance(value, Submit):
        found = {"input": "submit", **head, "job": dict(value.job)} | ({} if value.work is None else {"work": json_number(value.work)})
        return {**found, "ids": list(value.ids)} if value.ids else found
    if isinstance(value, JobRequest):
        sizes = {name: getattr(value, name) for name in ("gpus", "min_gpus", "max_gpus") if getattr(value, name)}
        others = {"others": list(value.others)} if value.others else {}
        return {"input": value.action.value, **head, "job": value.job, **sizes, **others}
    if isinstance(value, SetJob):
        fields = {"priority": value.priority, "queue": value.queue, "estimate": value.estimate}
        return {"input": "set", **head, "job": value.job, **{key: one for key, one in fields.items() if one is not None}}
    if isinstance(value, NodeEvent):
        found = {"input": "node", **head, "name": value.name, "kind": value.kind} | ({"reported": True} if value.reported else {})
        return found if value.node is None else {**found, "node": encode_node(value.node)}
    if isinstance(value, Use):
        return {"input": "use", **head, "policy": value.policy} | (
            {"settings": memories.plain(dict(value.settings))} if value.settings else {}
        )
    if isinstance(value, SetQueue):
        numbers = {name: json_number(getattr(value, name)) for name in ("weight", "quota", "borrow")}
        return {"input": "queue", **head, "name": value.name, **({"drop": True} if value.drop else numbers)}
    if isinstance(value, Reserve):
        from gantline.core.windows import encode_window

        return {"input": "reserve", **head, "window": encode_window(value.window)}
    if isinstance(value, Unreserve):
        return {"input": "unreserve", **head, "name": value.name}
    found = {"input": "report", **head, "news": value.news.value, "row": value.row, "epoch": value.epoch, "done": json_number(value.done)}
    if not math.isnan(value.total):
        found["total"] = json_number(value.total)
    if value.metrics:
        found["metrics"] = {name: json_number(measured) for name, measured in value.metrics.items()}
    if value.revision:
        found["revision"] = value.revision
    if value.lost is not None:
        found["lost"] = value.lost.value
    if value.actual:
        found["actual"] = list(value.actual)
    return {**found, "devices": list(value.devices)} if value.devices else found


def decode_input(value: Mapping[str, Any]) -> Input:
    """The input that `encode_input` wrote, or a person."""
    reader = Reader(value, "input")
    kind, time = reader.text("input"), reader.number("time", 0.0)
    if kind == "submit":
        reader.only(("input", "time", "job", "work", "ids"))
        work = reader.number("work", 0.0) if "work" in reader else None
        return Submit(time, dict(reader.raw("job") or {}), work, _names(reader, "ids"))
    if kind in _ACTIONS:
        reader.only(("input", "time", "job", "gpus", "min_gpus", "max_gpus", "others"))
        gpus, least, most = (reader.whole(name, 0) for name in ("gpus", "min_gpus", "max_gpus"))
        return JobRequest(time, _ACTIONS[kind], reader.text("job"), gpus, least, most, _names(reader, "others"))
    if kind == "set":
        reader.only(("input", "time", "job", "priority", "queue", "estimate"))
        numbers = {name: reader.number(name, 0.0) for name in ("priority", "estimate") if name in reader}
        return SetJob(time, reader.text("job"), queue=reader.text("queue") if "queue" in reader else None, **numbers)
    if kind == "node":
        reader.only(("input", "time", "name", "kind", "node", "reported"))
        node = decode_node(Reader(reader.raw("node"), reader.at("node")), 0) if "node" in reader else None
        return NodeEvent(time, reader.text("name"), reader.text("kind"), node, reader.flag("reported", False))
    if kind == "use":
        reader.only(("input", "time", "policy", "settings"))
        return Use(time, reader.text("policy"), memories.restore(reader.raw("settings", {})))
    if kind == "queue":
        reader.only(("input", "time", "name", "weight", "quota", "borrow", "drop"))
        weight, quota, borrow = (reader.number(name, usual) for name, usual in (("weight", 1.0), ("quota", math.inf), ("borrow", 0.0)))
        return SetQueue(time, reader.text("name"), weight, quota, borrow, reader.flag("drop", False))
    if kind == "reserve":
        from gantline.core.windows import decode_window

        reader.only(("input", "time", "window"))
        return Reserve(time, decode_window(Reader(reader.raw("window"), reader.at("window"))))
    if kind == "unreserve":
        reader.only(("input", "time", "name"))
        return Unreserve(time, reader.text("name"))
    if kind == "report":
        reader.only(("input", "time", "news", "row", "epoch", "done", "devices", "total", "metrics", "revision", "lost", "actual"))
        news = reader.text("news")
        if news not in _NEWS:
            raise UsageError(f"no news '{news}'", where=reader.at("news"), fix=near(news, _NEWS))
        found = (_NEWS[news], reader.whole("row", 0), reader.whole("epoch", 0), time, reader.number("done", 0.0))
        measured = Reader(reader.raw("metrics", {}), reader.at("metrics"))
        metrics = {name: measured.number(name, math.nan) for name in reader.raw("metrics", {})}
        lost = reader.text("lost") if "lost" in reader else ""
        if lost and lost not in _FAULTS:
            raise UsageError(f"no fault '{lost}'", where=reader.at("lost"), fix=near(lost, _FAULTS))
        beyond = (reader.whole("revision", 0), _FAULTS.get(lost), _names(reader, "actual"))
        return Report(*found, tuple(reader.wholes("devices")), reader.number("total", math.nan), metrics, *beyond)
    raise UsageError(f"no input '{kind}'", where=reader.at("input"), fix=near(kind, _KINDS))


def _names(reader: Reader, key: str) -> tuple[str, ...]:
    """A list of ids; empty where there is none."""
    found = reader.raw(key, [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise UsageError("is not a list of ids", where=reader.at(key), fix='write ["3_0", "3_1"]')
    return tuple(found)
