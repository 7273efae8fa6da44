"""Connects a service to a Ray cluster, one that runs or one of its own on this machine that outlives the service, and reads its nodes."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import RefusedError, UnreachableError, UsageError
from gantline.core.slices import is_cpu
from gantline.live.host import Lease, accepts
from gantline.live.runners.local.devices import short_name
from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.runner_events import NodeNews, NodeState

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


NAMESPACE = "gantline"  # of all actors
OLDEST = (2, 50)  # bundles of placement groups that are bound to labels of nodes
_WHERE = "--ray-address"
_AWAY = "600"  # seconds that Ray's control store may be away before Ray ends a process that needs it
_START = "300"  # seconds that a node of our own may take to start: machines are busy
_STORE = 100_000_000  # bytes of shared memory that a cluster of our own sets aside: jobs exchange nothing through it


def load() -> Handle:
    """Ray, if it is there and new enough."""
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", _AWAY)
    try:
        import ray
    except ImportError:
        raise UsageError("Ray is not installed", where="--executor ray", fix="pip install 'gantline[ray]'") from None
    if tuple(int(part) for part in ray.__version__.split(".")[:2]) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise RefusedError(f"Ray {ray.__version__} is too old", where="--executor ray", fix=f"install Ray {oldest} or newer on all nodes")
    return ray


def connect(address: str) -> None:
    """Connect this process, unless it is; an address at which no cluster answers, and one of another version, are refused."""
    ray = load()
    if address != "auto" and not _answers(address):
        fix = "start one (ray start --head), check the address, or leave it out for a cluster of its own"
        raise UnreachableError(f"no Ray cluster answers at {address}", where=_WHERE, fix=fix)
    if ray.is_initialized():
        return
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError as error:
        fix = "start one on this machine (ray start --head, or ray start --address HEAD), or give --ray-address HOST:PORT"
        raise UnreachableError(_first(error), where=_WHERE, fix=fix) from None
    except RuntimeError as error:
        fix = "install the cluster's versions of Ray and Python here"
        raise RefusedError(_first(error), where=_WHERE, fix=fix) from None


def _first(error: Exception) -> str:
    return " ".join(str(error).split(". ")[0].split())


def _answers(address: str) -> bool:
    """Whether something listens there. Ray takes a loopback address for that of this host, so both are tried."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"'{address}' is no address", where=_WHERE, fix="write HOST:PORT, for example 10.0.0.1:6379, or auto")
    from ray.util import get_node_ip_address

    own = get_node_ip_address() if host in ("localhost", "127.0.0.1") else host
    for one in dict.fromkeys((own, host)):
        with contextlib.suppress(OSError), socket.create_connection((one, int(port)), timeout=5.0):
            return True
    return False


class OwnCluster:
    """A cluster on this machine alone, for a service that was given none. It is started as programs of its own and outlives the service."""

    def __init__(self, home: Path) -> None:
        self.file = home / "ray" / "cluster.json"

    def address(self) -> str:
        """Where it is; it is started if it is not there."""
        load()
        known = read_json(str(self.file)) or {}
        if known and _answers(str(known["address"])):
            return str(known["address"])
        self.stop()
        return self._start()

    def _start(self) -> str:
        folder = tempfile.mkdtemp(prefix="gantline-ray-")  # not in the home: names of sockets must be short
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        cpus = len(os.sched_getaffinity(0))
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--head", f"--port={port}", f"--num-cpus={cpus}", f"--temp-dir={folder}",
            "--include-dashboard=false", f"--object-store-memory={_STORE}", "--disable-usage-stats", "--node-ip-address=127.0.0.1",
        ]  # fmt: skip
        stored = {"RAY_gcs_storage": "rocksdb", "RAY_gcs_storage_path": f"{folder}/gcs"}
        env = {**os.environ, **stored, "RAY_gcs_rpc_server_reconnect_timeout_s": _AWAY, "RAY_raylet_start_wait_time_s": _START}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no reason was given"]
            raise UnreachableError(f"a Ray cluster cannot be started here: {last[0]}", where="--executor ray", fix="give --ray-address")
        self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(str(self.file), {"address": f"127.0.0.1:{port}", "folder": folder})
        return f"127.0.0.1:{port}"

    def stop(self) -> None:
        """End its processes, which are those that name its folder."""
        known = read_json(str(self.file)) or {}
        folder = str(known.get("folder", ""))
        if not folder:
            return
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()):
            with contextlib.suppress(OSError):
                if folder.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
        self.file.unlink(missing_ok=True)


# What Ray hands out: its actors and its module have no types that could be checked.

Handle: TypeAlias = Any


# At most one service schedules a Ray cluster: an actor of a well-known name holds its lease, and tells others which
# one that is.

_NAME = "gantline-service"
_PATIENCE = 5.0  # seconds that the lease's actor has to answer when a service ends
LEASE = 30.0  # seconds of silence after which another service may schedule


class ServiceLease:
    """The actor: it has no devices and outlives services."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.holder, self.words, self.lease = "", "", Lease(LEASE, clock)

    def take(self, home: str, words: str) -> str:
        """Take or prolong the lease; empty: it is held now, else the words of the holder. A home may take its own at any time."""
        if self.holder not in ("", home) and not self.lease.is_over:
            return self.words
        self.holder, self.words = home, words
        self.lease.renew()
        return ""

    def leave(self, home: str) -> None:
        """Give it up."""
        if self.holder == home:
            self.holder = ""


class OneService:
    """A service's side of it."""

    def __init__(self, home_id: str, home: str) -> None:
        import ray

        self._home, self._words = home_id, f"the service of {home} on {socket.gethostname()} (process {os.getpid()})"
        self._left, self._lock = False, threading.Lock()  # a lease that is prolonged after it was given up would be held for a while
        options = {"name": _NAME, "namespace": NAMESPACE, "lifetime": "detached", "num_cpus": 0, "get_if_exists": True}
        self._actor: Handle = ray.remote(ServiceLease).options(**options).remote()

    def take(self) -> None:
        """Take the lease, or be refused with the holder's words."""
        import ray

        holder = ray.get(self._actor.take.remote(self._home, self._words))
        if holder:
            fix = f"stop that one, or wait {LEASE:g} s if it is gone for good"
            raise RefusedError(f"{holder} schedules this Ray cluster already", where="--ray-address", fix=fix)

    def prolong(self) -> None:
        """Say that this service is there; nothing waits for it."""
        with self._lock:
            if not self._left:
                self._actor.take.remote(self._home, self._words)

    def leave(self) -> None:
        """Give it up, for good."""
        import ray

        with self._lock:
            self._left = True
            given_up = self._actor.leave.remote(self._home)
        ray.wait([given_up], timeout=_PATIENCE)  # what is on its way when Ray is shut down would be lost


# The nodes of a Ray cluster as the engine sees them: devices by Ray's resources, under names by which they stay known.
#
# A node is called by its label ``gantline.io/node``, else by the name that it was started with (``ray start --node-name``), else by its
# host. Ray gives a node that is started again another id; the name is what it is known by. Where two nodes that are there have the same
# name, the second is called by its id as well, for as long as the first is known.

LABEL = "gantline.io/node"
_TYPE, _TYPE_LABEL = "accelerator_type:", "ray.io/accelerator-type"
_GB = 2**30


@dataclass(frozen=True)
class RayNode:
    """One node."""

    id: str
    node: Node
    address: str
    port: int  # of the process that Ray runs on each node

    @property
    def resource(self) -> str:
        """What Ray calls its devices."""
        return "CPU" if is_cpu(self.node.type) else "GPU"

    def answers(self) -> bool:
        """Whether Ray's process there accepts connections, whatever Ray's control store believes."""
        return accepts(self.address, self.port)


@dataclass
class RayNodes:
    """All nodes that were seen, by name; `see` is called from one thread."""

    file: Path  # where names are kept from one service to the next
    slots: bool = False  # CPUs of nodes without GPUs are devices
    present: dict[str, RayNode] = field(default_factory=dict)
    lost: dict[str, RayNode] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)  # by id

    def __post_init__(self) -> None:
        self._names = dict(read_json(str(self.file)) or {})

    @property
    def cluster(self) -> Cluster:
        return Cluster(tuple(one.node for one in sorted(self.present.values(), key=lambda one: one.node.name)), spec="ray")

    def see(self, listed: Iterable[Values]) -> list[NodeNews]:
        """What is new in Ray's list. A node that Ray gives up is lost once its process there does not answer either."""
        alive = {str(one["NodeID"]): one for one in listed if one["Alive"]}
        news = [self._lose(one) for one in list(self.present.values()) if one.id not in alive and not one.answers()]
        waits = {name for name, one in self.present.items() if one.id not in alive}  # Ray has given it up, and it answers still
        for id, one in alive.items():
            known = self._names.get(id)
            if (known is not None and known in self.present) or self._name(one) in waits:
                continue
            name = known or self._new_name(id, one)
            node = self._node(name, one)
            if node is not None:
                self.present[name] = RayNode(id, node, str(one["NodeManagerAddress"]), int(one["NodeManagerPort"]))
                self.lost.pop(name, None)
                news.append(NodeNews(name, NodeState.UP, node))
        return news

    def resource(self, name: str) -> str:
        """What Ray calls the devices of a node, also of one that is lost."""
        return (self.present.get(name) or self.lost[name]).resource

    def verdict(self, name: str) -> str:
        """Whose fault the loss of a keeper there is: ``node``, ``engine``; empty: it is not known yet."""
        here = self.present.get(name)
        return "node" if here is None else "engine" if here.answers() else ""

    def _lose(self, one: RayNode) -> NodeNews:
        name = one.node.name
        self.lost[name] = self.present.pop(name)
        return NodeNews(name, NodeState.LOST, why="Ray has lost it, and it does not answer")

    def _new_name(self, id: str, one: Values) -> str:
        name = self._name(one)
        self._names[id] = name if name not in self.present else f"{name}-{id[:6]}"
        write_json(str(self.file), self._names)
        return self._names[id]

    @staticmethod
    def _name(one: Values) -> str:
        given = str(one.get("NodeName", ""))
        chosen = "" if given == one["NodeManagerAddress"] else given
        return str(one.get("Labels", {}).get(LABEL) or chosen or one["NodeManagerHostname"])

    def _node(self, name: str, one: Values) -> Node | None:
        """The node with its devices; None: it has none that jobs could use."""
        has: Mapping[str, float] = one["Resources"]
        cpus, memory, gpus = float(has.get("CPU", 0.0)), float(has.get("memory", 0.0)) / _GB, int(has.get("GPU", 0.0))
        if gpus:
            return Node(name, _gpu_type(one), gpus, cpus, memory)
        return Node(name, "cpu", int(cpus), cpus, memory) if self.slots and cpus >= 1 else None


def _gpu_type(one: Values) -> str:
    labelled = one.get("Labels", {}).get(_TYPE_LABEL)
    found = labelled or next((key.removeprefix(_TYPE) for key in one["Resources"] if key.startswith(_TYPE)), "")
    return short_name(str(found)) if found else "gpu"


def check_devices(devices: str | None) -> bool:
    """Whether CPUs are devices; anything but ``cpu`` is refused, because a cluster declares its devices itself."""
    if devices in (None, ""):
        return False
    if devices != "cpu":
        fix = "leave it out for the GPUs that Ray knows of, or write --devices cpu: CPUs of nodes without GPUs are slots"
        raise UsageError(f"'{devices}': the devices of a Ray cluster are those that its nodes declare", where="--devices", fix=fix)
    return True
