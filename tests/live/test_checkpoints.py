"""A loop that is made anew from its own checkpoint, after whatever was received, decides as the one that went on."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.inputs import Action, Input, JobRequest, News, NodeEvent, Report, SetQueue, Submit, Use
from gantline.core.phases import Phase
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.journal import Journal
from gantline.engine.executor import Can
from gantline.live.scheduler.setup import Setup, checkpoint_of, make_loop
from gantline.live.wall_time import Live

CLUSTER = parse_cluster("2x4")
RIGID, SUPPLE = frozenset({Can.SHARE, Can.BATCH}), frozenset(Can)
Heard = tuple[float, Input]


@dataclass(frozen=True)
class Noon:
    """A clock that nobody looks at."""

    def now(self) -> float:
        return 0.0


class Twins:
    """What is received is received by two loops: one goes on, the other is made anew from its checkpoint after each instant."""

    def __init__(self, policy: str = "las", *, able: frozenset[Can] = RIGID, **setup: Any) -> None:
        self.setup, self.able = Setup(policy, **setup), able
        self.made: list[dict[str, Any]] = []
        self.again: list[dict[str, Any]] = []
        self.loop, self.other = self._listen(None, self.made), self._listen(None, self.again)

    def _listen(self, saved: Any, lines: list[dict[str, Any]]) -> Live:
        loop, journal = make_loop(self.setup, saved, CLUSTER, None, Noon()), Journal(whole=False)
        journal.lines, loop.engine.recorder, loop.inbox.able = lines, journal.decided, lambda row: self.able
        return loop

    def receive(self, *script: Heard, until: float = 0.0) -> Twins:
        for at in sorted({at for at, _ in script}):
            now = [(when, value) for when, value in script if when == at]
            for value in (value for _, value in now if isinstance(value, Use)):
                self.setup = replace(self.setup, policy=value.policy)
            left_out, again = self.loop.fold(now, at), self.other.fold(now, at)
            assert [(place, str(error)) for place, error in left_out] == [(place, str(error)) for place, error in again]
            assert self.again == self.made
            self._make_anew()
        self.loop.fold([], until)
        self.other.fold([], until)
        assert self.again == self.made
        self._make_anew()
        return self

    def _make_anew(self) -> None:
        if self.loop.state.all_arrived and self.loop.is_quiet:
            saved = json.dumps(checkpoint_of(self.other, self.setup, 0.0))
            assert json.loads(saved) == json.loads(json.dumps(checkpoint_of(self.loop, self.setup, 0.0)))
            self.other = self._listen(json.loads(saved), self.again)

    def phase(self, row: int) -> Phase:
        return Phase(int(self.loop.state.tables.I[Job.PHASE, row]))


def submit(at: float, id: str, gpus: int = 1, **more: Any) -> Heard:
    return at, Submit(at, {"id": id, "gpus": gpus, "checkpoint": "inf", **more})


def ask(at: float, request: Action, id: str, gpus: int = 0) -> Heard:
    return at, JobRequest(at, request, id, gpus)


def report(at: float, news: News, row: int, epoch: int, happened: float, devices: Sequence[int] = ()) -> Heard:
    return at, Report(news, row, epoch, happened, devices=tuple(devices))


def test_a_start_that_is_reported_late_counts_from_when_it_happened() -> None:
    twins = Twins("las").receive(submit(1.0, "a"), submit(2.0, "b"), report(3.0, News.STARTED, 0, 1, 1.5, [0]), submit(4.0, "c", 8))
    assert twins.other.state.tables.F[Job.SINCE, 0] == 1.5  # its age is what LAS orders by


def test_a_gang_that_was_granted_devices_and_waits_for_them_is_not_out_there() -> None:
    twins = Twins("fifo").receive(submit(1.0, "a", 8), report(1.2, News.STARTED, 0, 1, 1.1, range(8)), submit(2.0, "b", 8))
    twins.receive(ask(3.0, Action.HOLD, "a"))
    assert twins.phase(1) is Phase.STARTING
    assert list(twins.other.reconciler.live) == [0]
    twins.receive(report(4.0, News.STOPPED, 0, 1, 3.9))
    assert list(twins.other.reconciler.live) == [1]


def test_a_job_that_was_spared_when_it_was_put_on_hold_is_not_spared_for_ever() -> None:
    twins = Twins("las", able=SUPPLE, grace=10.0).receive(submit(1.0, "a"), report(1.5, News.STARTED, 0, 1, 1.4, [0]), submit(2.0, "b", 8))
    twins.receive(ask(3.0, Action.HOLD, "a"), report(4.0, News.STOPPED, 0, 1, 3.9), ask(5.0, Action.RELEASE, "a"), submit(50.0, "c"))
    assert not twins.other.state.tables.I[Job.LOCKED, 0]


def test_a_gang_that_cannot_change_its_size_yet_does_so_later() -> None:
    twins = Twins("fifo", able=SUPPLE, grace=10.0).receive(submit(1.0, "a", 4), submit(1.1, "b", 8), ask(2.0, Action.RESIZE, "a", 2))
    assert twins.other.state.to_fit == {0}
    twins.receive(report(3.0, News.STARTED, 0, 1, 2.9, range(4)), until=60.0)
    assert twins.other.state.tables.I[Job.HELD, 0] == 2


def test_a_finish_that_is_not_seen_before_the_boundary_is_seen_there() -> None:
    twins = Twins("las", regime="gavel", round=60.0).receive(submit(1.0, "a"), until=61.0)
    twins.receive(report(62.0, News.STARTED, 0, 1, 61.5, [0]), report(70.0, News.FINISHED, 0, 1, 69.0), until=121.0)
    assert twins.phase(0) is Phase.COMPLETED


def test_what_a_job_used_before_a_checkpoint_is_charged_after_it() -> None:
    """It ends between two rounds, and the policy is asked again only after the loop was made anew."""
    twins = Twins("fair-share", round=60.0).receive(submit(1.0, "a", 8, user="ann"), submit(2.0, "b", user="bob"), until=61.0)
    twins.receive(report(62.0, News.STARTED, 0, 1, 61.0, range(8)), report(91.0, News.FINISHED, 0, 1, 91.0), until=91.0)
    assert twins.other.state.gone.attained_gpu.tolist() == [240.0]
    twins.receive(submit(92.0, "c", 8, user="ann"), until=121.0)
    assert twins.other.state.memory["usage"]["user:ann"] == pytest.approx(240.0, rel=1e-3)


class Story:
    """Requests by a seed, and machines that answer when they can: each report is received some time after what it reports."""

    def __init__(self, policy: str, seed: int, able: frozenset[Can]) -> None:
        self.twins = Twins(policy, able=able, min_run=3.0, grace=6.0, round=0.0, quantum=5.0)
        self.chance = random.Random(seed)
        faults = Faults(delay=(0.0, 1.0), doubled=0.1, start=(0.0, 4.0), stop=(0.0, 3.0), heartbeat=60.0)
        self.machines = FaultyExecutor(np.full(500, 25.0), faults, seed, able=able)
        self.twins.loop.inbox.executor = self.machines
        self.known: list[str] = []
        self.now = 0.0

    def live(self, requests: int) -> None:
        for _ in range(requests):
            self._answer(self.now + self.chance.expovariate(1.0))
            self._hear([self._request()])
        self._answer(self.now + 40.0)

    def _answer(self, until: float) -> None:
        while (at := self.machines.next_time()) <= until:
            self.now = max(self.now, at)
            self._hear(self.machines.receive(self.now))
        self.now = until

    def _hear(self, values: Sequence[Input]) -> None:
        at = math.nextafter(max(self.now, self.twins.loop.stamped, self.twins.loop.state.now), math.inf)
        self.twins.receive(*((at, value if isinstance(value, Report) else replace(value, time=at)) for value in values))

    def _request(self) -> Input:
        draw = self.chance
        kind = draw.choice(["submit"] * 5 + ["ask"] * 4 + ["node", "use", "queue"])
        here = [id for row, id in enumerate(self.known) if not self.twins.phase(row).terminal]  # of others nothing can be asked
        if kind == "submit" or not here:
            self.known.append(str(len(self.known)))
            least, most = sorted((draw.randint(1, 4), draw.randint(1, 4)))
            told = {"gpus": least, "min_gpus": least, "max_gpus": most, "estimate": draw.choice((5.0, 50.0)), "queue": draw.choice("qr")}
            return Submit(0.0, {"id": self.known[-1], "checkpoint": draw.choice(("inf", 7.0)), **told})
        if kind == "ask":
            request = draw.choice((Action.CANCEL, Action.HOLD, Action.RELEASE, Action.RELEASE, Action.REQUEUE, Action.RESIZE, Action.SAVE))
            return JobRequest(0.0, request, draw.choice(here), draw.randint(1, 4) if request is Action.RESIZE else 0)
        if kind == "node":
            return NodeEvent(0.0, draw.choice([node.name for node in CLUSTER.nodes]), draw.choice(("drain", "up", "down", "up")))
        if kind == "queue":
            return SetQueue(0.0, draw.choice("qr"), quota=draw.choice((2.0, 4.0, math.inf)))
        return Use(0.0, draw.choice(("las", "srtf", "afs", "gandiva", "fifo")))


@pytest.mark.parametrize(("policy", "able"), [("las", RIGID), ("afs", SUPPLE), ("gandiva", SUPPLE), ("fair-share", SUPPLE)])
def test_whatever_happens(policy: str, able: frozenset[Can]) -> None:
    Story(policy, seed=2, able=able).live(requests=10)
