"""Random stories of nodes: they join, are lost, return, are drained and are replaced by others of their size while services come and go.

A story is told on a stage, which has nodes, gangs and services: pretended ones, or ones with real processes.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import NamedTuple, Protocol

from tests.live.specs import Spec, state, until

from gantline.live.scheduler.replay import replay_store
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore

NAMES = "abcde"
SERVICES = 3
EVENTS = 6  # while each of them runs
GANGS = (2, 1, 1)  # devices; one more gang with each service


class Sent(NamedTuple):
    """A start that a service has ordered."""

    job: str
    epoch: int
    nodes: frozenset[str]
    at: float  # by the service's clock


class Move(NamedTuple):
    """A gang that lost a node, by the service's clock."""

    lost: float  # when the loss was known
    left: float  # when it was known that nothing of it is left
    ordered: float  # when it was ordered elsewhere
    began: float  # when it ran there
    decisions: int  # that were made when it could be ordered, and did not order it

    @property
    def is_prompt(self) -> bool:
        """Whether it was ordered as soon as it could be: a decision that was being made at that moment does not know of it."""
        return self.decisions <= 1

    @property
    def starts(self) -> float:
        """How many start times it took until it ran elsewhere."""
        return (self.began - self.lost) / (self.began - self.ordered)


class NodeSize(Protocol):
    @property
    def gpus(self) -> int: ...

    @property
    def is_drained(self) -> bool: ...


class Stage(Protocol):
    """Nodes, gangs and services."""

    @property
    def nodes(self) -> Mapping[str, NodeSize]:
        """Those that are there."""
        ...

    @property
    def sent(self) -> list[Sent]: ...

    @property
    def breaches(self) -> list[str]:
        """Promises that were not kept."""
        ...

    def gang(self, gpus: int) -> Spec:
        """A job that runs until the end of the story, with a rank on each device."""
        ...

    def serving(self, store: SqlStore) -> AbstractContextManager[Scheduler]: ...

    def join(self, name: str, gpus: int) -> None: ...

    def lose(self, name: str) -> None: ...

    def drain(self, name: str, is_drained: bool) -> None: ...


class Story:
    """One story, by its seed. There is always room for every gang, so that none has a reason to wait."""

    def __init__(self, stage: Stage, store: SqlStore, seed: int) -> None:
        self.stage, self.store, self.draw = stage, store, random.Random(seed)
        self.jobs: list[str] = []
        self.losses = 0

    def tell(self) -> None:
        for name in NAMES[:4]:
            self.stage.join(name, 2)
        for service in range(SERVICES):
            with self.stage.serving(self.store) as scheduler:
                self.jobs += scheduler.submit(self.stage.gang(GANGS[service]))
                for _ in range(EVENTS):
                    self.happen()
                    if self.draw.random() < 0.5:  # else the next event comes before anything has followed from this one
                        self.settle(scheduler)
                self.settle(scheduler)
                assert all(scheduler.registry[job].failures == scheduler.registry[job].lost == 0 for job in self.jobs), (
                    "a retry was counted"
                )
            self.happen()
        assert not self.stage.breaches, self.stage.breaches
        assert replay_store(self.store).difference is None

    def settle(self, scheduler: Scheduler) -> None:
        """Until it is known which nodes are there, and every gang runs on them."""

        def settled() -> bool:
            view, here = scheduler.view(), self.stage.nodes
            offered = {device.node for device in view.devices if device.up} & set(NAMES)
            where = {device.rpartition(":")[0] for job in self.jobs for device in view.jobs[job].devices}
            is_known = offered == {name for name, node in here.items() if not node.is_drained}
            return is_known and where <= set(here) and all(state(scheduler, job) == "running" for job in self.jobs)

        until(settled, "every gang runs, on nodes that are known to be there")

    # --- what happens ---------------------------------------------------------------------------------------------------
    def happen(self) -> None:
        """One of the things that are possible now."""
        stage, draw = self.stage, self.draw
        here = stage.nodes
        spare = [name for name in here if self._room(name) > sum(GANGS)]  # one more: what is left of a gang may still be on it
        away = sorted(set(NAMES) - set(here))
        drained = [name for name in here if here[name].is_drained]
        possible = ["lose", "return", "drain"] * bool(spare) + ["join"] * 2 * bool(away) + ["resume"] * bool(drained)
        what = draw.choice(possible)
        if what == "join":
            stage.join(draw.choice(away), draw.choice([2, 2, 4]))
        elif what == "resume":
            stage.drain(draw.choice(drained), False)
        elif what == "drain":
            stage.drain(draw.choice(spare), True)
        else:
            name = draw.choice(spare)
            stage.lose(name)
            self.losses += 1
            if what == "return":  # perhaps before its loss is known
                stage.join(name, draw.choice([here[name].gpus, 2]))

    def _room(self, without: str) -> int:
        """Devices that may be used, less those of one node."""
        return sum(node.gpus for name, node in self.stage.nodes.items() if name != without and not node.is_drained)

    # --- how long it took -----------------------------------------------------------------------------------------------
    def moves(self) -> list[Move]:
        """Every gang that lost a node while a service knew where it was, and was started elsewhere."""
        lines = [line for _, line in self.store.journal()]
        downs = [(line["time"], line["name"]) for line in lines if line.get("input") == "node" and line["kind"] == "down"]
        reports = [line for line in lines if line.get("input") == "report"]
        began = {(line["row"], line["epoch"]): line["time"] for line in reports if line["news"] == "started"}
        decided = [line["now"] for line in lines if "decision" in line]
        ended: dict[tuple[int, int], float] = {}
        for line in reports:
            if line["news"] in ("failed", "stopped"):
                ended.setdefault((line["row"], line["epoch"]), line["heard"])
        found = []
        for row, job in enumerate(self.jobs):
            starts = list({one.epoch: one for one in reversed(self.stage.sent) if one.job == job}.values())[::-1]  # orders are repeated
            for before, after in pairwise(starts):
                lost = [at for at, name in downs if name in before.nodes and before.at < at <= after.at]
                if lost and (row, after.epoch) in began:
                    left = max(lost[0], ended.get((row, before.epoch), lost[0]))
                    passed = sum(left <= now < after.at for now in decided)
                    found.append(Move(lost[0], left, after.at, began[row, after.epoch], passed))
        return found
