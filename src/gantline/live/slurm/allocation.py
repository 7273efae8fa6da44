"""One allocation of a Slurm cluster: whether it runs, until when, and the nodes with what it has of each."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gantline.core.errors import RefusedError, UsageError
from gantline.core.nodes import Node
from gantline.live.reachable import accepts
from gantline.live.slurm.commands import WHERE, SlurmAway, SlurmSaysNo, ask
from gantline.live.slurm.listings import host_names, pairs_of, state_words
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
