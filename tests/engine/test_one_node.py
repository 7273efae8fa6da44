"""A job whose process uses several devices is on one node: under orders, plans that name devices, shared devices, growth and resizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
from tests.jobs import held_by, job_row

from gantline import Assignment, Mode, Plan, Policy, Snapshot
from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.inputs import Action, JobRequest, Submit
from gantline.core.reasons import Reason
from gantline.simulator.simulate import simulate

LONG = job_row("long", 2, 5000.0)

BRIEF = job_row("brief", 1, 1.0)


def ask(name: str = "one", gpus: int = 2, **more: object) -> Submit:
    return Submit(0.0, {"id": name, "gpus": gpus, "consolidate": 1, **more}, 1000.0)


@dataclass(frozen=True)
class Across(Policy):
    """Names a device of each node for every job, and lets them share these or not."""

    shares: bool = False
    names_devices: ClassVar[bool] = True

    def decide(self, snapshot: Snapshot) -> Plan:
        mode = {"group": 0, "mode": Mode.SPACE, "fraction": 0.5} if self.shares else {}
        return Plan.assign(
            [Assignment(job, devices=(job, job + 3) if not self.shares else (0, 3), **mode) for job in range(len(snapshot.jobs))]
        )


@pytest.mark.parametrize("placement", ["first-free", "consolidated", "consolidated:preferred", "random", "skew"])
def test_every_placement_rule_keeps_it_on_one_node(placement: str) -> None:
    run = simulate([LONG], "2x3", "fifo", placement=placement, inputs=[ask()], until=900)
    (nodes,) = held_by(run, "one")["nodes"].to_list()
    assert len(nodes) == 1


def test_without_the_requirement_it_is_spread() -> None:
    run = simulate([LONG], "2x3", "fifo", inputs=[Submit(0.0, {"id": "one", "gpus": 2}, 1000.0)], until=900)
    (nodes,) = held_by(run, "one")["nodes"].to_list()
    assert len(nodes) == 2


def test_it_grows_where_it_is_or_moves_as_a_whole() -> None:
    """On its node there is one device more: it goes on there with three; four are only on the larger node."""
    requests = [JobRequest(100.0, Action.RESIZE, "one", 3), JobRequest(200.0, Action.RESIZE, "one", 4)]
    run = simulate([BRIEF], "1x3,1x4", "fifo", inputs=[ask(max_gpus=4), *requests], until=900)
    spans = held_by(run, "one").rows(named=True)
    assert [(span["start"], span["gpus"], len(span["nodes"])) for span in spans] == [(0.0, 2, 1), (100.0, 3, 1), (200.0, 4, 1)]
    assert set(spans[0]["devices"]) < set(spans[1]["devices"]), "it keeps the devices that it has"
    assert not set(spans[1]["devices"]) & set(spans[2]["devices"])


def test_more_than_any_node_has_is_refused() -> None:
    with pytest.raises(RefusedError, match="can use no more than 3 devices, and not 4"):
        simulate([LONG], "2x3", "fifo", inputs=[ask(gpus=4)])
    with pytest.raises(RefusedError, match="more devices than the cluster has"):
        simulate([LONG], "2x3", "fifo", inputs=[ask(gpus=7)])
    with pytest.raises(RefusedError, match="can use no more than 3 devices, and not 5"):
        simulate([LONG], "2x3", "fifo", inputs=[ask(max_gpus=5)])


@pytest.mark.parametrize("shares", [False, True])
def test_a_plan_that_names_devices_of_two_nodes_for_it_is_not_followed(shares: bool) -> None:
    run = simulate([LONG], "2x3", Across(shares), inputs=[ask()], until=900)
    assert set(run.allocations["job"]) == {"long"}
    assert int(run.tables.I[Job.REASON, 1]) == int(Reason.INFEASIBLE)
