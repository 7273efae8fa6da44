"""An allocation of a Slurm cluster as a runner: gangs are its steps, kept by processes of this machine; a thread watches its nodes."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

from gantline.core.cluster import Cluster
from gantline.engine.executor import Can, Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.job_environment import gang_ranks
from gantline.live.runners.local.devices import Machine
from gantline.live.runners.local.execution import Execution
from gantline.live.runners.local.files import ROOT, read_json, write_json
from gantline.live.runners.local.fork_server import KeeperForkServer
from gantline.live.runners.local.home_runner import KeeperRunner
from gantline.live.runners.local.incarnation import Incarnation, Incarnations
from gantline.live.runners.local.isolation import Groups
from gantline.live.runners.local.orders import Writer
from gantline.live.runners.local.output import KeptJobs
from gantline.live.runners.local.slices import Mps
from gantline.live.runners.registry import OPTIONS
from gantline.live.runners.runner_context import Contact, RunnerContext, RunnerOption, Task
from gantline.live.runners.runner_events import NodeNews, NodeState
from gantline.live.runners.slurm.allocation import DRAINS, ServiceStep, SlurmAllocation, SlurmNodes, check_devices, find_allocation
from gantline.live.runners.slurm.commands import SlurmAway, answering, check_installed
from gantline.live.runners.slurm.messages import LEASE, end_step

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values


_LOG = logging.getLogger("gantline.live")
_LOOK = 2.0  # seconds between looks at the allocation
_PATIENCE = 20.0  # seconds that the ends of gangs on a lost node may take before the loss is told without them


@dataclass
class SlurmRunner(KeeperRunner):
    """A runner for one allocation. `attach` before the first order."""

    options: ClassVar[Sequence[RunnerOption]] = OPTIONS["slurm"]
    able: ClassVar[frozenset[Can]] = frozenset({Can.TERMS, Can.SUSPEND, Can.SAVE, Can.BATCH})
    machines: ClassVar[str] = "Slurm's nodes"

    home: Path
    devices: str | None = None
    url: str = ""
    job: str = ""  # empty: the allocation that the service is in
    checkpoints: Path | None = None

    def __post_init__(self) -> None:
        self.home = Path(self.home).absolute()
        self._slots = check_devices(self.devices)
        check_installed()
        with answering():
            found = find_allocation(self.job, self._slots)
            self.job, self.nodes = found.job, SlurmNodes(found.job)
            self.nodes.see(found)
            self._service = ServiceStep(self.job, self.home)
            self._service.take()
        self.kept, self.checkpoints = KeptJobs(self.home), self.checkpoints or self.home / "jobs"
        self._prepare(Incarnations(partial(SlurmIncarnation, nodes=self.nodes, checkpoints=self.checkpoints)), step_fork_server())
        self._node_news: deque[tuple[list[NodeNews], list[SlurmIncarnation]]] = deque()
        self._closed = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="gantline-slurm-nodes", daemon=True)

    @classmethod
    def check(cls, devices: str | None, options: Mapping[str, str]) -> Sequence[str]:
        check_devices(devices)
        check_installed()
        return ()

    @classmethod
    def open(cls, context: RunnerContext) -> Self:
        given = context.options
        folder = given.get("slurm-checkpoints")
        runner = cls(context.home, context.devices, context.url, given.get("slurm-job", ""), Path(folder) if folder else None)
        runner.known.generation = context.generation
        return runner

    def notes(self) -> Sequence[str]:
        return [f"note: jobs run in allocation {self.job} of Slurm: {len(self.nodes.present)} nodes, {self.cluster.gpus} devices"]

    # --- beginning ------------------------------------------------------------------------------------------------------
    @property
    def cluster(self) -> Cluster:
        return self.nodes.cluster

    @property
    def drained(self) -> Mapping[str, str]:
        return dict.fromkeys(self.nodes.drained, DRAINS)

    def attach(self, contact: Contact) -> None:
        self._contact = contact
        writer = SlurmWriter(
            self.home, self.url, Machine(self.cluster, {}), Groups(), Mps(self.home), contact.cluster,
            job=self.job, by_node=contact.by_node, address=self._address,
        )  # fmt: skip
        for one in map(_of_slurm, self.known.alive()):
            if lost := one.missing():
                one.write_order(want="stop", grace=0.0, lost_nodes=lost)
        self._begin(Execution(self.home, contact, self.known, writer, StepKeepers(self.fork_server), self._orders))
        self._watcher.start()

    def _address(self, node: str) -> str:
        here = self.nodes.present.get(node)
        return here.address if here is not None else node

    @property
    def alive(self) -> bool:
        return super().alive and self._watcher.is_alive()

    # --- jobs -----------------------------------------------------------------------------------------------------------
    def switched(self, job: str, epoch: int) -> None:
        """Gangs do not change their devices while they run."""

    # --- the end --------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        self._closed.set()
        if self._watcher.is_alive():
            self._watcher.join(_LOOK)  # it may wait for an answer; what it is told then is of no use
        self._service.leave()
        super().close()

    # --- nodes ----------------------------------------------------------------------------------------------------------
    def _watch(self) -> None:
        """Look at the allocation, and find out why parts of gangs are gone; slurmctld may be away for a while."""
        is_away = False
        while not self._closed.wait(_LOOK):
            try:
                found = SlurmAllocation.look(self.job, self._slots)
                if self._closed.is_set():
                    return
                self._look_at(found)
                if not found.is_over:
                    self._service.prolong()
                is_away = False
            except SlurmAway as error:
                if not is_away:
                    _LOG.warning("slurmctld does not answer, and is asked again: %s", error)
                is_away = True
            except Exception:
                _LOG.exception("while looking at allocation %s", self.job)

    def _look_at(self, found: SlurmAllocation) -> None:
        if found.is_ending:  # Slurm ends the gangs itself, once they have had KillWait to save; then their nodes are lost
            if news := self.nodes.close(f"allocation {found.job} ends"):
                _LOG.warning("allocation %s ends; gangs have Slurm's KillWait to save", found.job)
                self._node_news.append((news, []))
                self._ring()
            return
        alive = list(map(_of_slurm, list(self.known.live.values())))
        doubtful = [one for one in alive if one.is_doubtful and not one.verdict]
        news = self.nodes.see(found, {name for one in doubtful for name in one.names()})
        if news:
            for node in news:
                _LOG.warning("node %s is %s%s", node.name, node.state.value, f": {node.why}" if node.why else "")
            self._lose(news, alive)
        for one in doubtful:
            if not one.verdict and not one.missing():
                one.verdict = "engine"
                self._ring()

    def _lose(self, news: list[NodeNews], alive: Sequence[SlurmIncarnation]) -> None:
        """End what is left of gangs on nodes that are lost, so that their ends are told with the loss."""
        lost = {one.name for one in news if one.state is NodeState.LOST}
        over = [one for one in alive if not lost.isdisjoint(one.names())]
        for one in over:
            if not one.is_doubtful:
                one.write_order(want="stop", grace=0.0, lost_nodes=one.missing())
        end = time.monotonic() + _PATIENCE
        while not all(one.over or one.is_doubtful for one in over) and time.monotonic() < end:
            time.sleep(0.05)
        self._node_news.append((news, over))
        self._ring()

    def _look(self) -> None:
        for _ in range(len(self._node_news)):
            news, over = self._node_news.popleft()
            with self._execution.together(news):
                for one in over:
                    one.verdict = one.verdict or "node"
                    self._try(self._execution.look, one)


def _of_slurm(one: Incarnation) -> SlurmIncarnation:
    assert isinstance(one, SlurmIncarnation)
    return one


# One incarnation of a job in an allocation: as one on this machine, but that Slurm may have ended what its keeper has started.
#
# Where a part of a gang is gone without a word, its end is seen when it is known whose fault that is, and told behind the loss of the node.

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
