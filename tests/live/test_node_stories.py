"""Nodes come and go while services do: nothing starts on a node known to be lost, no job is blamed, and gangs are soon elsewhere.

Random stories by seed: nodes join, are lost, return, are drained and are replaced by others of their size. Nodes and gangs are pretended;
what runners do with real processes is in the contracts that they keep (`gantline.lab.conformance`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from tests.live.pretend import Machines, PretendRunner
from tests.live.specs import replays, shell, state, until
from tests.simulator.references import one_in

from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore

NAMES = "abcde"
SERVICES = 3
EVENTS = 6  # while each of them runs
GANGS = (2, 1, 1)  # devices; one more gang with each service


class Story:
    """One story, by its seed. There is always room for every gang, so that none has a reason to wait."""

    def __init__(self, store: SqlStore, seed: int) -> None:
        self.store, self.draw, self.machines = store, random.Random(seed), Machines()
        self.runner: PretendRunner | None = None  # of the service that runs
        self.jobs: list[str] = []

    def tell(self) -> None:
        for name in NAMES[:4]:
            self.machines.add(name)
        for service in range(SERVICES):
            with self.serving() as scheduler:
                self.jobs += scheduler.submit(shell("true", GANGS[service], processes=0))
                for _ in range(EVENTS):
                    self.happen()
                    if self.draw.random() < 0.5:  # else the next event comes before anything has followed from this one
                        self.settle(scheduler)
                self.settle(scheduler)
                assert all(scheduler.registry[job].failures == scheduler.registry[job].lost == 0 for job in self.jobs), (
                    "a retry was counted"
                )
            self.happen()
        assert not self.machines.breaches, self.machines.breaches
        replays(self.store)

    @contextmanager
    def serving(self) -> Iterator[Scheduler]:
        self.runner = PretendRunner(self.machines)
        scheduler = Scheduler(self.store, self.runner, "fifo", checkpoint_every=20)
        scheduler.start()
        try:
            lost = scheduler.endings.nodes.absent
            self.machines.known_lost = lambda: lost
            yield scheduler
        finally:
            scheduler.stop()
        self.runner = None

    def settle(self, scheduler: Scheduler) -> None:
        """Until it is known which nodes are there, and every gang runs on them."""

        def settled() -> bool:
            view, here = scheduler.view(), self.machines.nodes
            offered = {device.node for device in view.devices if device.up} & set(NAMES)
            where = {device.rpartition(":")[0] for job in self.jobs for device in view.jobs[job].devices}
            is_known = offered == set(here) - self.machines.drained
            return is_known and where <= set(here) and all(state(scheduler, job) == "running" for job in self.jobs)

        until(settled, "every gang runs, on nodes that are known to be there")

    def happen(self) -> None:
        """One of the things that are possible at this point."""
        draw, here, drained = self.draw, dict(self.machines.nodes), sorted(self.machines.drained)
        spare = [name for name in here if self._room(name) > sum(GANGS)]  # one more: what is left of a gang may still be on it
        away = sorted(set(NAMES) - set(here))
        possible = ["lose", "return", "drain"] * bool(spare) + ["join"] * 2 * bool(away) + ["resume"] * bool(drained)
        what = draw.choice(possible)
        if what == "join":
            self._join(draw.choice(away), draw.choice([2, 2, 4]))
        elif what == "resume":
            (self.runner or self.machines).drain(draw.choice(drained), False)
        elif what == "drain":
            (self.runner or self.machines).drain(draw.choice(spare), True)
        else:
            name = draw.choice(spare)
            (self.runner.lose if self.runner else self.machines.kill)(name)
            if what == "return":  # perhaps before its loss is known
                self._join(name, draw.choice([here[name].gpus, 2]))

    def _join(self, name: str, gpus: int) -> None:
        (self.runner.join if self.runner else self.machines.add)(name, gpus)

    def _room(self, without: str) -> int:
        """Devices that may be used, less those of one node."""
        gone = self.machines.drained | {without}
        return sum(node.gpus for name, node in self.machines.nodes.items() if name not in gone)

    def decisions_missed(self) -> list[int]:
        """Of every gang that lost a node while a service knew where it was: decisions that could have started it elsewhere and did not."""
        lines = [line for _, line in self.store.journal()]
        downs = [(line["time"], line["name"]) for line in lines if line.get("input") == "node" and line["kind"] == "down"]
        reports = [line for line in lines if line.get("input") == "report"]
        began = {(line["row"], line["epoch"]) for line in reports if line["news"] == "started"}
        decided = [line["now"] for line in lines if "decision" in line]
        ended: dict[tuple[int, int], float] = {}
        for line in reports:
            if line["news"] in ("failed", "stopped"):
                ended.setdefault((line["row"], line["epoch"]), line["heard"])
        found = []
        for row, job in enumerate(self.jobs):
            starts = list({one.epoch: one for one in reversed(self.machines.sent) if one.job == job}.values())[::-1]  # orders are repeated
            for before, after in pairwise(starts):
                lost = [at for at, name in downs if name in before.nodes and before.at < at <= after.at]
                if lost and (row, after.epoch) in began:
                    left = max(lost[0], ended.get((row, before.epoch), lost[0]))
                    found.append(sum(left <= now < after.at for now in decided))
        return found


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_gangs_outlive_their_nodes(tmp_path: Path, seed: int) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    story = Story(store, seed)
    story.tell()
    missed = story.decisions_missed()
    store.close()
    assert max(missed, default=0) <= 1, "one that was being made at that moment does not know of the loss"
