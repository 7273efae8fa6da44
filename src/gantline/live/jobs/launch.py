"""How a job is run: the part of a specification that the runner needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeAlias

from gantline.core.cluster import Cluster
from gantline.core.inputs import Submit
from gantline.core.json_reader import json_number
from gantline.core.slices import is_cpu, is_slice
from gantline.engine.executor import Can

PER_NODE = -1

#: what an engine makes on each node before ranks start there, in Ray's words
RuntimeEnv: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Launch:
    """How one job is run. Times are seconds."""

    command: tuple[str, ...]  # an argument list; with `shell`, one line for /bin/sh
    shell: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""  # empty: the folder of the incarnation
    processes: int = 1  # how many ranks; 0: one per device; PER_NODE: one on each node
    stop_signal: str = "TERM"
    grace: float = 10.0  # from the signal to the kill
    stopped_exit: int | None = None  # its exit code when it was asked to stop and has saved; None: any but 0, which means that it is done
    save_signal: str = ""  # a signal that makes it save and go on; empty: it cannot
    resumes: bool = False  # it keeps its work in GANTLINE_CHECKPOINT when it is stopped, and goes on from there
    # what may change while it runs: devices, batch, save; it learns of a change from the answers to its reports, or from grant.json
    changes: tuple[str, ...] = ()
    share: str = ""  # how it shares a device of which it needs a part: "mps" (side by side, where that can be) or "time" (in turns)
    part: float = 1.0  # that part
    retries: int = 0  # how often it is tried again after an exit code other than zero
    backoff: float = 1.0  # before the first retry; doubled for each further one
    resizes: int | None = None  # how often its number of devices may change; None: any number of times
    time_limit: float = math.inf  # running time of all incarnations together
    log_bytes: int = 64 << 20  # of output kept: the newest
    memory: float = 0.0  # GB; 0: no limit
    pids: int = 0  # processes and threads at once; 0: no limit of its own
    after: tuple[tuple[str, str], ...] = ()  # (job, "ok" | "failed" | "ended" | "started"): what must have come of others before it may run
    image: str = ""  # the container image that it runs in; only where the runner has containers
    mounts: tuple[str, ...] = ()  # FROM:TO[:ro], what it sees of the outside there
    runtime_env: RuntimeEnv = field(default_factory=dict)  # only where the runner makes environments
    object: str = ""  # the engine's own object that it is, KIND/NAME/UID: that makes its processes
    array: str = ""  # the array it belongs to
    array_index: int = -1
    parallel: int = 0  # how many of the array may be let in at once; 0: all

    def can(self, slots: bool = False) -> frozenset[Can]:
        """Which changes need not stop it on this machine.

        A job with a rank per device that says it can use other devices takes new ranks in and lets others go between two steps.
        `slots`: all devices are places for processes, none of which a process is bound to. On GPUs a part of a device that is not a part
        of the time is set when a process starts.
        """
        found = (
            {Can.TERMS, Can.SUSPEND, Can.COLLOCATE}
            | ({Can.MOVE} if slots else set())
            | ({Can.SHARE} if slots or self.share == "time" else set())
        )
        if "devices" in self.changes:
            found.add(Can.DEVICES)
        if "batch" in self.changes:
            found.add(Can.BATCH)
        if self.save_signal or "save" in self.changes:
            found.add(Can.SAVE)
        return frozenset(found)

    @property
    def per_node(self) -> bool:
        """Whether one process on each node uses all devices that the gang has there, and starts others itself: torchrun does."""
        return self.processes == PER_NODE

    def ranks(self, devices: int, nodes: int = 1) -> int:
        """How many processes a gang of that size has."""
        return nodes if self.per_node else self.processes or max(devices, 1)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what is at its default."""
        found = {}
        for one in fields(self):
            value = getattr(self, one.name)
            usual = {} if isinstance(value, Mapping) else one.default
            if value != usual:
                found[one.name] = json_number(value) if isinstance(value, float) else _plain(value)
        return found

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Launch:
        """What `to_json` wrote."""
        fields = dict(value)
        for name in ("command", "changes", "mounts"):
            fields[name] = tuple(fields.get(name, ()))
        fields["after"] = tuple((job, when) for job, when in fields.get("after", ()))
        if "time_limit" in fields:
            fields["time_limit"] = float(fields["time_limit"])
        return Launch(**fields)


def slots_only(cluster: Cluster) -> bool:
    """Whether all devices are CPU slots of one kind (``cpu``), to which no process is bound; slots of two speeds are not alike.

    Slices of slots are not among them: their processes are bound to cores.
    """
    types = {node.type for node in cluster.nodes}
    return len(types) == 1 and all(is_cpu(kind) and not is_slice(kind) for kind in types)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


class Submittable(Protocol):
    """What the scheduler asks of a specification; `runtime.spec.JobSpec` is one."""

    def first(self) -> Submittable:
        """Itself, or the first job of its array."""
        ...

    def to_submit(self, id: str, now: float) -> Submit: ...

    def launch(self) -> Launch: ...

    def launches(self, number: str) -> Sequence[Launch]:
        """How it is run, or each job of its array; `number` is that of the array, where it is one."""
        ...

    def to_json(self) -> dict[str, Any]: ...
