"""Silence beyond a lease is a loss, wherever one is held: these clocks stand still until the test moves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gantline.live.host import Lease
from gantline.live.runners.kubernetes.lease_and_rights import Leadership
from gantline.live.runners.local.files import read_json, write_json
from gantline.live.runners.ray.connection import LEASE as RAY_LEASE
from gantline.live.runners.ray.connection import ServiceLease
from gantline.live.runners.slurm.messages import LEASE, WholeLines
from gantline.live.runners.slurm.part import PartKeeper
from gantline.live.runners.slurm.step import GangKeeper


class Clock:
    """It shows what it is set to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_runs_out_unless_a_sign_of_life_comes_and_can_be_given_up() -> None:
    clock = Clock()
    lease = Lease(30.0, clock)
    for _ in range(3):
        clock.now += 30.0
        assert not lease.is_over
        lease.renew()
    clock.now += 30.1
    assert lease.is_over
    lease.renew()
    assert not lease.is_over
    lease.end()
    assert lease.is_over


# --- Slurm: a gang and its parts ------------------------------------------------------------------------------------------
class OfTwoNodes(GangKeeper):
    """The keeper of a gang whose parts run, without Slurm."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        write_json(str(folder / "order.json"), {"nodes": ["n1", "n2"], "want": "run"})
        super().__init__(str(folder), clock)
        for node in self.nodes:
            self.hear(_word(node=node, step="7.1", port=1))
            self.hears(node)
        self.sent = dict(self.order)

    def hears(self, node: str) -> None:
        self.hear(_word(node=node, state={"phase": "running"}))


def _word(**news: Any) -> bytes:
    return b"gantline! " + json.dumps(news).encode()


def test_a_part_that_is_silent_beyond_its_lease_ends_its_gang_and_is_not_taken_in_again(tmp_path: Path) -> None:
    clock = Clock()
    gang = OfTwoNodes(tmp_path, clock)
    clock.now += LEASE
    gang.hears("n1")
    gang.judge()
    assert (gang.ends_all, gang.state["phase"]) == (False, "running"), "its lease has not run out"
    clock.now += 0.1
    gang.judge()
    assert gang.ends_all
    assert (gang.states["n1"]["phase"], gang.states["n2"]["phase"]) == ("running", "over")
    assert gang.states["n2"]["why"] == "its part on node n2 has been silent for 30 s"
    gang.hears("n2")
    assert gang.states["n2"]["phase"] == "over", "what comes back finds its epoch over"


@pytest.mark.parametrize(("cause", "at_once"), [("stopped", False), ("failed", True)])
def test_a_gang_of_which_one_part_has_ended_early_is_ended_and_saves_where_slurm_stopped_the_part(
    tmp_path: Path, cause: str, at_once: bool
) -> None:
    gang = OfTwoNodes(tmp_path, Clock())
    gang.hear(_word(node="n1", state={"phase": "over", "cause": cause, "exit": 15}))
    assert (gang.ends_all, gang.ends_at_once) == (True, at_once)


def test_a_part_that_hears_nothing_of_its_gang_ends_its_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, ended = Clock(), []
    write_json(str(tmp_path / "order.json"), {"want": "run", "env": {"GANTLINE_CHECKPOINT": str(tmp_path)}})
    part = PartKeeper(str(tmp_path), "n1", WholeLines(), clock)
    part.order = read_json(str(tmp_path / "order.json")) or {}
    monkeypatch.setattr(part, "kill", lambda: ended.append(clock.now))
    for _ in range(2):
        clock.now += LEASE
        part.count()
        part.receive(b"{}")
    assert not ended
    clock.now += LEASE + 0.1
    part.count()
    assert ended == [clock.now]


# --- one service for a cluster ----------------------------------------------------------------------------------------------
def test_another_home_may_schedule_a_ray_cluster_when_the_lease_of_the_first_has_run_out() -> None:
    clock = Clock()
    lease = ServiceLease(clock)
    assert lease.take("a", "the service of /a") == ""
    assert lease.take("b", "the service of /b") == "the service of /a"
    clock.now += RAY_LEASE
    assert lease.take("a", "the service of /a, started again") == "", "a home may take its own at any time"
    clock.now += RAY_LEASE
    assert lease.take("b", "the service of /b") == "the service of /a, started again"
    clock.now += 0.1
    assert lease.take("b", "the service of /b") == ""
    assert lease.take("a", "the service of /a") == "the service of /b", "what comes back finds its time over"
    lease.leave("b")
    assert lease.take("a", "the service of /a") == ""


class Api:
    """Takes whatever is written."""

    skew = 0.0

    def create(self, path: str, value: dict[str, Any]) -> dict[str, Any]:
        return value

    replace = create

    def get(self, path: str) -> None:
        return None


def test_a_service_may_write_to_kubernetes_only_while_its_lease_runs() -> None:
    clock = Clock()
    leadership = Leadership(Api(), "default", "home", lambda error: None, clock)  # type: ignore[arg-type]
    assert not leadership.is_held
    leadership.acquire()
    clock.now += 15.0
    assert leadership.is_held
    clock.now += 0.1
    assert not leadership.is_held
