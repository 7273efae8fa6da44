"""One incarnation of a job in an allocation: as one on this machine, but that Slurm may have ended what its keeper has started.

Where a part of a gang is gone without a word, its end is seen when it is known whose fault that is, and told behind the loss of the node.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gantline.engine.executor import Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.job_environment import gang_ranks
from gantline.live.runners.local.files import ROOT, read_json, write_json
from gantline.live.runners.local.fork_server import KeeperForkServer
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.orders import Writer
from gantline.live.runners.runner_context import Task
from gantline.live.runners.slurm.allocation import SlurmNodes
from gantline.live.runners.slurm.messages import LEASE, end_step

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


_UNKNOWN = "?"


@dataclass
class SlurmIncarnation(Incarnation):
    """One incarnation, under one epoch."""

    nodes: SlurmNodes = field(kw_only=True)
    checkpoints: Path = field(kw_only=True)
    verdict: str = ""  # whose fault the loss of a part is: ``node``, ``engine``; empty: it is not known yet

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint" if self.is_trial else self.checkpoints / self.job / "checkpoint"

    def names(self) -> list[str]:
        """The nodes that it is on."""
        return list(self.order.get("nodes", ()))

    @property
    def is_doubtful(self) -> bool:
        """Whether it has ended, and it is not known whose fault that is."""
        written = read_json(str(self.folder / "state.json")) if not self.over else None
        return isinstance(written, dict) and written.get("phase") == "over" and written.get("fault") == _UNKNOWN

    def missing(self) -> list[str]:
        """Those of its nodes that the allocation does not have; all of them where it is in another allocation."""
        if self.order.get("allocation") not in (None, self.nodes.job):
            return self.names()
        return [name for name in self.names() if name not in self.nodes.present]

    def read(self) -> bool:
        seen, before = self.seen, self.state
        if not super().read():
            return False
        if self.over and self.state.get("fault") == _UNKNOWN:
            if not self.verdict:
                self.seen, self.state = seen, before
                return False
            self.state["fault"] = self.verdict
            write_json(str(self.folder / "state.json"), self.state)
            self.read()
        return True

    def adopt(self) -> bool:
        self.order = read_json(str(self.folder / "order.json")) or {}
        self.verdict = "node" if self.missing() else "engine"
        alive = super().adopt()
        if alive and not self.missing():
            self.verdict = ""
        return alive

    def abandoned(self) -> bool:
        return False if self.is_doubtful and not self.verdict else super().abandoned()

    def end_strays(self) -> None:
        """Its keeper was killed: Slurm ends what is left of its step."""
        if step := self.state.get("step"):
            end_step(str(step), LEASE)

    def mark(self) -> int:
        return int(self.state.get("mark", -1))


# What is written into the order of an incarnation in an allocation: as on one machine, and the step that it becomes.

#: the program of each task; the nodes have the same Python under the same path
PART = (sys.executable, "-S", "-E", "-c", f"import sys; sys.path[0] = {ROOT!r}; from gantline.live.runners.slurm.part import main; main()")
_STEP = (
    "srun", "--overlap", "--mpi=none", "--mem=0", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0", "--chdir=/", "--quiet",
    "--ntasks-per-node=1", "--input=all", "--export=ALL",
)  # fmt: skip


@dataclass
class SlurmWriter(Writer):
    """Writes orders for an allocation."""

    job: str = ""
    by_node: Callable[[tuple[int, ...]], Mapping[str, list[int]]] = lambda devices: {}
    address: Callable[[str], str] = lambda node: node  # where the other nodes reach one

    def order(self, order: Order, task: Task, one: Incarnation) -> Values:
        written, places = super().order(order, task, one), self.by_node(order.devices)
        ranks = gang_ranks(task.launch, places, "", 0)  # where they meet is known when they are there
        counts = {name: sum(rank.node == name for rank in ranks) for name in places}
        nodes = [name for name in places if counts[name]]
        return {
            **written, "ranks": [rank.env for rank in ranks], "nodes": nodes, "parts": [counts[name] for name in nodes],
            "places": [places[name] for name in nodes], "address": self.address(nodes[0]), "allocation": self.job,
            "device_names": [f"{name}:{place}" for name, held in places.items() for place in held],
            "srun": [*_STEP, *self._step(f"gantline-{task.job}.{order.epoch}", nodes), *PART],
        }  # fmt: skip

    def _step(self, name: str, nodes: list[str]) -> list[str]:
        """Its step has a task on each node. Output of one node comes as it is printed; that of several in whole lines."""
        found = [f"--jobid={self.job}", f"--job-name={name}", f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}"]
        return [*found, f"--ntasks={len(nodes)}", *(["--unbuffered"] if len(nodes) == 1 else [])]


# Keepers of gangs in an allocation: processes of this machine, forked from one that has imported what they need.

_STEP_KEEPERS = f"""import os, sys; sys.path[0] = {ROOT!r}
from gantline.live.runners.local.fork_server import serve_keepers
from gantline.live.runners.slurm.step import keep
os._exit(serve_keepers(keep))"""


def step_fork_server() -> KeeperForkServer:
    """Where keepers come from which run a step each."""
    return KeeperForkServer((sys.executable, "-S", "-E", "-c", _STEP_KEEPERS))


@dataclass(frozen=True)
class StepKeepers:
    """How they begin."""

    fork_server: KeeperForkServer

    def begin(self, one: Incarnation, launch: Launch) -> None:
        one.begin(self.fork_server)

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """Nothing more is known."""
