"""The number of nodes without their names: a gang on exactly so many nodes, by its assignment or by an option of its trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.errors import TraceError
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class As(Policy):
    """Every job gets what is said here."""

    said: dict[str, Any] = field(default_factory=dict)

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(k, **self.said) for k in range(len(snapshot.jobs))], valid_until=FOREVER)


@pytest.mark.parametrize(
    ("span", "devices"), [(1, [0, 1, 2, 3]), (2, [0, 1, 4, 5]), (3, [0, 1, 4, 8]), (4, [0, 4, 8, 12])], ids="{} nodes".format
)
def test_a_gang_of_four_on_so_many_nodes(span: int, devices: list[int]) -> None:
    run = simulate([job("a", 4, 100)], "4x4", As({"span": span}))

    assert spans(run, "a") == [(0.0, 100.0, devices, "finished")]


def test_a_gang_that_spans_another_number_of_nodes_moves() -> None:
    @dataclass(frozen=True)
    class Spreads(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            later = snapshot.now >= 50
            return Plan.assign([Assignment(0, span=2 if later else 1)], valid_until=FOREVER if later else 50.0)

    run = simulate([job("a", 4, 100)], "2x4", Spreads())

    assert [(start, end, devices) for start, end, devices, _ in spans(run, "a")] == [
        (0.0, 50.0, [0, 1, 2, 3]),
        (50.0, 100.0, [0, 1, 4, 5]),
    ]
    assert fact(run, "a", "restarts") == 1


def test_named_devices_must_be_on_so_many_nodes() -> None:
    run = simulate([job("a", 2, 100)], "2x2", As({"devices": (0, 1), "span": 2}), until=50.0)

    assert spans(run, "a") == []
    assert simulate([job("a", 2, 100)], "2x2", As({"devices": (0, 2), "span": 2})).jobs["finish"].to_list() == [100.0]


@pytest.mark.parametrize("span", [3, 5], ids=["more nodes than devices", "more than there are"])
def test_what_can_never_be_is_not_started(span: int) -> None:
    run = simulate([job("a", 2, 100)], "4x4", As({"span": span}), until=50.0)

    assert spans(run, "a") == []


def test_a_group_shares_devices_on_so_many_nodes() -> None:
    run = simulate([job("a", 2, 100), job("b", 2, 100)], "2x2", As({"group": 0, "mode": Mode.SPACE, "span": 2}))

    assert spans(run, "a") == spans(run, "b") == [(0.0, 200.0, [0, 2], "finished")]


def test_an_option_of_a_trace_says_on_how_many_nodes_it_is_that_fast() -> None:
    run = simulate([job("a", 4, 100, options="gpu:4@2=80|gpu:4@1=100")], "gpu:2x4", "fifo")

    assert spans(run, "a") == [(0.0, 80.0, [0, 1, 4, 5], "finished")]


def test_an_option_on_more_nodes_than_there_are_is_left_out_and_a_job_without_another_refused() -> None:
    run = simulate([job("a", 4, 100, options="gpu:4@4=50|gpu:4@2=100")], "gpu:2x4", "fifo")

    assert run.summary["left_out_options"] == 1
    assert fact(run, "a", "finish") == 100.0
    with pytest.raises(TraceError, match="can never run"):
        simulate([job("a", 4, 100, options="gpu:4@4=50")], "gpu:2x4", "fifo")
