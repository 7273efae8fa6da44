"""An allocation of a Slurm cluster as a runner: gangs are its steps, kept by processes of this machine; a thread watches its nodes."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Self

from gantline.core.cluster import Cluster
from gantline.engine.executor import Can
from gantline.live.runners.local.devices import Machine
from gantline.live.runners.local.execution import Execution
from gantline.live.runners.local.home_runner import KeeperRunner
from gantline.live.runners.local.incarnation import Incarnation, Incarnations
from gantline.live.runners.local.isolation import Groups
from gantline.live.runners.local.kept import KeptJobs
from gantline.live.runners.local.slices import Mps
from gantline.live.runners.registry import OPTIONS
from gantline.live.runners.runner_context import Contact, RunnerContext, RunnerOption
from gantline.live.runners.runner_events import NodeNews, NodeState
from gantline.live.runners.slurm.allocation import DRAINS, ServiceStep, SlurmAllocation, SlurmNodes, check_devices, find_allocation
from gantline.live.runners.slurm.commands import SlurmAway, answering, check_installed
from gantline.live.runners.slurm.incarnation import SlurmIncarnation, SlurmWriter, StepKeepers, step_fork_server

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
