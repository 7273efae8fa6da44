"""Nodes come and go while services do: nothing starts on a node known to be lost, no job is blamed, and gangs are soon elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.live.node_stories import Story
from tests.live.pretend import Machines, PretendRunner
from tests.live.racks import RANK, Rack, RackNode, RackRunner
from tests.live.specs import Spec, end_all, shell
from tests.simulator.references import one_in

from gantline.live.runners.runner import Runner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore


@contextmanager
def served(store: SqlStore, runner: Runner) -> Iterator[Scheduler]:
    scheduler = Scheduler(store, runner, "fifo", checkpoint_every=20)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()


class PretendNode(NamedTuple):
    gpus: int
    is_drained: bool


class PretendStage:
    """Nodes and gangs that exist only in this process."""

    def __init__(self) -> None:
        self.machines = Machines()
        self.sent, self.breaches = self.machines.sent, self.machines.breaches
        self._runner: PretendRunner | None = None  # of the service that runs

    @property
    def nodes(self) -> dict[str, PretendNode]:
        return {name: PretendNode(node.gpus, name in self.machines.drained) for name, node in self.machines.nodes.items()}

    def gang(self, gpus: int) -> Spec:
        return shell("true", gpus, processes=0)

    def join(self, name: str, gpus: int) -> None:
        (self._runner.join if self._runner is not None else self.machines.add)(name, gpus)

    def lose(self, name: str) -> None:
        (self._runner.lose if self._runner is not None else self.machines.kill)(name)

    def drain(self, name: str, is_drained: bool) -> None:
        (self._runner or self.machines).drain(name, is_drained)

    @contextmanager
    def serving(self, store: SqlStore) -> Iterator[Scheduler]:
        runner = PretendRunner(self.machines)
        with served(store, runner) as scheduler:
            lost, self._runner = scheduler.endings.nodes.absent, runner
            self.machines.known_lost = lambda: lost
            yield scheduler
        self._runner = None


class RealStage:
    """A rack of nodes with real processes."""

    def __init__(self, folder: Path) -> None:
        self.rack = Rack(folder)
        self.sent, self.join, self.lose, self.drain = self.rack.sent, self.rack.boot, self.rack.kill, self.rack.drain

    @property
    def nodes(self) -> dict[str, RackNode]:
        return self.rack.nodes

    @property
    def breaches(self) -> list[str]:
        return self.rack.breaches

    def gang(self, gpus: int) -> Spec:
        return shell(RANK, gpus, processes=0, env={"BOARD": str(self.rack.board)})

    @contextmanager
    def serving(self, store: SqlStore) -> Iterator[Scheduler]:
        with served(store, RackRunner(self.rack)) as scheduler:
            self.rack.known_lost = scheduler.endings.nodes.absent
            yield scheduler


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    opened = SqlStore.open(tmp_path / "gantline.sqlite")
    yield opened
    opened.close()


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_pretended_gangs_outlive_their_nodes(store: SqlStore, seed: int) -> None:
    story = Story(PretendStage(), store, seed)
    story.tell()
    assert all(move.is_prompt for move in story.moves()), story.moves()


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_gangs_of_real_processes_outlive_their_nodes(tmp_path: Path, store: SqlStore, seed: int) -> None:
    stage = RealStage(tmp_path)
    story = Story(stage, store, seed)
    try:
        story.tell()
    finally:
        end_all(stage.rack.home)
    moves = story.moves()
    assert all(move.is_prompt for move in moves), moves
    longest = max((move.starts for move in moves), default=0.0)
    print(f"{story.losses} losses, {len(moves)} gangs moved; each was elsewhere within {longest:.2f} of its start time")
