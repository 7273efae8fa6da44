"""One allocation of a Slurm cluster: whether it runs, until when, and the nodes with what it has of each."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from gantline.core.cluster import Cluster, Node
from gantline.core.errors import RefusedError, UnreachableError, UsageError
from gantline.live.host import accepts
from gantline.live.runners.local.files import home_mark
from gantline.live.runners.runner_events import NodeNews, NodeState
from gantline.live.runners.slurm.commands import CLOSED, GONE, WHERE, SlurmAway, SlurmSaysNo, ask, host_names, pairs_of, state_words
from gantline.live.runners.slurm.messages import srun_environment
from gantline.traces.importers.slurm import gpus_of

_HERE = re.compile(r"\sNodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")
_TYPE = re.compile(r"gpu:([A-Za-z][\w.\-]*):\d+")
_RUNS = ("RUNNING", "SUSPENDED", "RESIZING")
_WAITS = ("PENDING", "CONFIGURING")
_ENDS = "COMPLETING"  # what ran in it has been asked to end, and may save until KillWait is over
_FIX = "salloc -N 3 --no-kill --gres=gpu:8 gantline up --executor slurm, or --slurm-job ID of an allocation that runs"


@dataclass(frozen=True)
class AllocatedNode:
    """One node of an allocation."""

    node: Node
    address: str
    port: int  # of its slurmd
    state: frozenset[str]

    def answers(self) -> bool:
        """Whether its slurmd accepts connections, whatever slurmctld believes."""
        return accepts(self.address, self.port)


@dataclass(frozen=True)
class SlurmAllocation:
    """What Slurm says of it now."""

    job: str
    state: str
    nodes: Mapping[str, AllocatedNode]

    @property
    def is_over(self) -> bool:
        """Whether nothing can begin in it any more."""
        return self.state not in _RUNS

    @property
    def is_ending(self) -> bool:
        """Whether what ran in it may still be there, to save."""
        return self.state == _ENDS

    @classmethod
    def look(cls, job: str, slots: bool) -> SlurmAllocation:
        """Ask Slurm; `slots`: CPUs of nodes without GPUs are devices."""
        try:
            said = ask("scontrol", "--details", "--oneliner", "show", "job", job)
        except SlurmAway:
            raise
        except SlurmSaysNo:
            return cls(job, "GONE", {})  # Slurm forgets jobs some minutes after their end
        about = pairs_of(said)
        state = about.get("JobState", "GONE")
        hosts = host_names(about.get("NodeList", "")) if state in _RUNS else ()
        listed = ask("scontrol", "--oneliner", "show", "node", ",".join(hosts)).splitlines() if hosts else []
        held = {name: (cpus, memory, gres) for names, cpus, memory, gres in _HERE.findall(said) for name in host_names(names)}
        found: dict[str, AllocatedNode] = {}
        for pairs in map(pairs_of, listed):
            name = pairs.get("NodeName", "")
            if name in held and (node := _node(name, *held[name], pairs, slots)) is not None:
                address = pairs.get("NodeAddr", name)
                found[name] = AllocatedNode(node, address, int(pairs.get("Port", "6818")), state_words(pairs.get("State", "UNKNOWN")))
        return cls(job, state, found)


def _node(name: str, cpus: str, memory: str, gres: str, whole: Mapping[str, str], slots: bool) -> Node | None:
    """A node with what the allocation has of it, or all memory that it has where Slurm does not count it; None: no devices for jobs."""
    count, gigabytes = _count(cpus), float(int(memory) or int(whole.get("RealMemory", "0"))) / 1024
    gpus, types = int(gpus_of(gres)), sorted(set(_TYPE.findall(gres)))
    if len(types) > 1:
        what = f"the allocation has GPUs of several types on {name}: {', '.join(types)}"
        raise UsageError(what, where=WHERE, fix=f"ask for one type on each node: salloc --gres=gpu:{types[0]}:N")
    if gpus:
        return Node(name, types[0].lower() if types else "gpu", gpus, count, gigabytes)
    return Node(name, "cpu", count, count, gigabytes) if slots and count else None


def _count(ranges: str) -> int:
    """How many numbers a list such as ``0-7,16`` has."""
    return sum(int(high or low) - int(low) + 1 for low, _, high in (part.partition("-") for part in ranges.split(",")) if low.isdigit())


def find_allocation(named: str, slots: bool) -> SlurmAllocation:
    """The allocation that is named, else the one that this process is in; one that is over, and no allocation at all, are refused.

    A named one is remembered from an earlier start: where it is over and the service starts inside another, that one is meant.
    """
    inside = os.environ.get("SLURM_JOB_ID", "")
    job = named or inside
    if not job:
        raise RefusedError("there is no allocation to run jobs in", where=WHERE, fix=_FIX)
    if not job.isdigit():
        raise UsageError(f"'{job[:40]}' is no id of a Slurm job", where="--slurm-job", fix="see squeue --me")
    found = SlurmAllocation.look(job, slots)
    if found.is_over and inside.isdigit() and inside != job:
        found = SlurmAllocation.look(inside, slots)
    _check_owner(found)
    if found.state in _WAITS:
        raise RefusedError(
            f"allocation {found.job} has not begun ({found.state})", where=WHERE, fix="start again when it runs: squeue --me"
        )
    if found.is_over:
        state = "Slurm does not know it" if found.state == "GONE" else found.state
        raise RefusedError(f"allocation {found.job} is over ({state})", where=WHERE, fix=f"jobs are kept for the next one: {_FIX}")
    if not found.nodes:
        fix = "ask for GPUs (salloc --gres=gpu:8), or write --devices cpu: every CPU of a node without GPUs is a slot"
        raise RefusedError(f"no node of allocation {found.job} has devices for jobs", where=WHERE, fix=fix)
    return found


def _check_owner(found: SlurmAllocation) -> None:
    """Steps can be made in one's own allocation only."""
    if found.is_over:
        return
    owner = re.search(r"\bUserId=([^\s(]*)\((\d+)\)", ask("scontrol", "--oneliner", "show", "job", found.job))
    if owner and os.getuid() not in (0, int(owner[2])):
        what = f"allocation {found.job} belongs to {owner[1]}: only its owner can start steps in it (srun --jobid)"
        raise RefusedError(what, where="--slurm-job", fix="name an allocation of your own: squeue --me")


# The nodes of an allocation as the engine sees them, by their names in Slurm: which come, go, drain and return.

DRAINS = "Slurm drains it"


@dataclass
class SlurmNodes:
    """Nodes by name; `see` is called from one thread."""

    job: str
    present: dict[str, AllocatedNode] = field(default_factory=dict)
    drained: set[str] = field(default_factory=set)

    @property
    def cluster(self) -> Cluster:
        return Cluster(tuple(one.node for _, one in sorted(self.present.items())), spec="slurm")

    def see(self, found: SlurmAllocation, suspects: Iterable[str] = ()) -> list[NodeNews]:
        """What is new. `suspects` are nodes on which a gang has fallen silent: lost, unless slurmd answers there."""
        there = {name: one for name, one in found.nodes.items() if one.state.isdisjoint(GONE)}
        silent = {name for name in suspects if name in there and not there[name].answers()}
        # one that Slurm has not given up yet does not return while it does not answer
        silent |= {name for name in there if name not in self.present and "NOT_RESPONDING" in there[name].state}
        there = {name: one for name, one in there.items() if name not in silent}
        news = [self._lose(name, found, name in silent) for name in list(self.present) if name not in there]
        for name, one in there.items():
            is_new, was_drained = name not in self.present, name in self.drained
            self.present[name] = one
            if one.state & CLOSED:
                self.drained.add(name)
                news += [NodeNews(name, NodeState.DRAINED, one.node, DRAINS)] if is_new or not was_drained else []
            elif is_new or was_drained:
                self.drained.discard(name)
                news.append(NodeNews(name, NodeState.UP, one.node))
        return news

    def close(self, why: str) -> list[NodeNews]:
        """Nothing begins any more on any node; what is new."""
        news = [NodeNews(name, NodeState.DRAINED, one.node, why) for name, one in self.present.items() if name not in self.drained]
        self.drained.update(self.present)
        return news

    def _lose(self, name: str, found: SlurmAllocation, is_silent: bool) -> NodeNews:
        del self.present[name]
        self.drained.discard(name)
        if found.is_over:
            return NodeNews(name, NodeState.LOST, why=f"allocation {found.job} is over ({found.state})")
        return NodeNews(name, NodeState.LOST, why="neither its part of a gang nor slurmd answers" if is_silent else "Slurm has given it up")


def check_devices(devices: str | None) -> bool:
    """Whether CPUs are devices; anything but ``cpu`` is refused, because an allocation says itself what it has."""
    if devices in (None, ""):
        return False
    if devices != "cpu":
        fix = "leave it out for the GPUs of the allocation, or write --devices cpu: CPUs of nodes without GPUs are slots"
        raise UsageError(f"'{devices}': the devices of an allocation are those that Slurm gave it", where="--devices", fix=fix)
    return True


# At most one service schedules an allocation: it holds a step of a well-known name, which ends with the service,
# however that ends.
#
# The step is `cat`: its input is closed when the service is gone. Its name says which home the service has, so that
# a service which is started again need not wait for the end of the step that it had. Of two that start at once the
# one with the older step stays.

_NAME = "gantline-service"
_PATIENCE = 3.0  # seconds in which the step of a service that was killed ends
_START = 30.0  # seconds that Slurm has to start a step
_LOOK = 0.1


class ServiceStep:
    """A service's side of it."""

    def __init__(self, job: str, home: Path) -> None:
        self.job = job
        self._home = home_mark(home)
        self._name = f"{_NAME}.{self._home}.{socket.gethostname()}.{os.getpid()}"
        self._step: subprocess.Popen[bytes] | None = None

    def take(self) -> None:
        """Hold the allocation, or be refused with the name of the service that does."""
        end = time.monotonic() + _PATIENCE
        while holder := self._other():
            if time.monotonic() > end:
                self._refuse(holder)
            time.sleep(_LOOK)
        self._begin()
        end = time.monotonic() + _START
        while self._name not in (held := self._held()):
            if time.monotonic() > end:
                self.leave()
                what, fix = f"Slurm starts no step in allocation {self.job}", f"try srun --jobid={self.job} --overlap hostname"
                raise UnreachableError(what, where=WHERE, fix=fix)
            self.prolong()
            time.sleep(_LOOK)
        if (holder := self._other()) in held[: held.index(self._name)]:
            self.leave()
            self._refuse(holder)

    def _other(self) -> str:
        """The step of another home's service; empty: there is none."""
        return next((name for name in self._held() if not name.startswith(f"{_NAME}.{self._home}.")), "")

    def _refuse(self, holder: str) -> NoReturn:
        host, _, pid = holder.split(".", 2)[2].rpartition(".")
        what = f"another service (process {pid} on {host}) schedules allocation {self.job} already"
        raise RefusedError(what, where=WHERE, fix="stop that one, or use an allocation of your own")

    def prolong(self) -> None:
        """Hold it again, should the step have ended: its node may be lost."""
        if self._step is not None and self._step.poll() is not None:
            self._begin()

    def leave(self) -> None:
        """Give it up."""
        if self._step is not None and self._step.stdin is not None:
            self._step.stdin.close()
            try:
                self._step.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._step.kill()
                self._step.wait()
            self._step = None

    def _held(self) -> list[str]:
        """The names of steps by which services hold the allocation, the oldest first."""
        listed = ask("squeue", "--noheader", "--steps", f"--jobs={self.job}", "--Format=StepID:40,StepName:200").splitlines()
        steps = [
            (int(step.rpartition(".")[2]), name) for step, _, name in (line.strip().partition(" ") for line in listed) if _NAME in name
        ]
        return [name.strip() for _, name in sorted(steps)]

    def _begin(self) -> None:
        quiet, env = subprocess.DEVNULL, srun_environment()
        command = ("srun", f"--jobid={self.job}", "--overlap", "--mpi=none", "--mem=0", "--quiet", "--nodes=1", "--ntasks=1", "--chdir=/")
        self._step = subprocess.Popen(
            (*command, f"--job-name={self._name}", "cat"),
            stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env=env, start_new_session=True,
        )  # fmt: skip
