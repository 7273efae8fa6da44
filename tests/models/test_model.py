"""A performance model is asked about every gang, whoever started it; what it learns and measures is part of the snapshot."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.jobs import job_row
from tests.probes.scenario import Says, every, in_steps

from gantline import Assignment, Snapshot, simulate
from gantline.core.errors import GantlineError, UsageError
from gantline.core.facts import Costs
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.models.model import Act, Gangs, Observed, PerformanceModel
from gantline.policies.fifo import Fifo


@dataclass(frozen=True)
class Half(PerformanceModel):
    def rates(self, gangs: Gangs) -> Any:
        return 0.5 * gangs.divided, np.full(len(gangs), np.inf)


def one(gpus: int = 1, seconds: float = 10.0, count: int = 1) -> list[dict[str, Any]]:
    return [job_row(f"j{k}", gpus, seconds) for k in range(count)]


EVERYBODY = every(gpus=1)


@pytest.mark.parametrize("policy", ["fifo", "las", "srtf", "fair-share", EVERYBODY])
def test_rankings_and_plain_gangs_go_as_fast_as_the_model_says(policy: Any) -> None:
    run = simulate(one(), "1x1", policy, performance=Half())
    assert run.jobs["finish"].to_list() == [20.0]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(UsageError, match="rates"):
        simulate(one(), "1x1", "fifo", performance=object())


@dataclass(frozen=True)
class Uphill(PerformanceModel):
    """Every job is half as fast after each ten seconds, counted from its own start."""

    asked: list[int] = field(default_factory=list)

    def rates(self, gangs: Gangs) -> Any:
        self.asked.append(len(gangs))
        return np.where(gangs.done < 10.0 - 1e-9, 1.0, 0.5), np.where(gangs.done < 10.0 - 1e-9, gangs.since + 10.0 - gangs.done, np.inf)


@pytest.mark.parametrize("policy", ["fifo", EVERYBODY])
@pytest.mark.parametrize("length", [None, 7.0])
def test_speeds_are_due_row_by_row(policy: Any, length: float | None) -> None:
    rows = [job_row(f"j{k}", 1, 20.0, at=float(k)) for k in range(4)]
    model = Uphill()
    run = simulate(rows, "1x4", policy, performance=model, round=length)
    start = run.jobs["first_start"].to_numpy()
    assert run.jobs["finish"].to_list() == pytest.approx((start + 10.0 + 20.0).tolist())
    assert sum(model.asked) == 8  # each at its start and at its own change, nobody else


@dataclass(frozen=True)
class Crowd(PerformanceModel):
    """All share one file system."""

    about_everyone = True

    def rates(self, gangs: Gangs) -> Any:
        return np.full(len(gangs), 1.0 / len(gangs)), np.full(len(gangs), np.inf)


@pytest.mark.parametrize("policy", ["fifo", EVERYBODY])
def test_a_speed_may_depend_on_everyone(policy: Any) -> None:
    rows = [job_row("a", 1, 10.0), job_row("b", 1, 10.0, at=5.0)]
    run = simulate(rows, "1x2", policy, performance=Crowd())
    assert run.jobs["finish"].to_list() == pytest.approx([15.0, 20.0])


@dataclass(frozen=True)
class Heavy(PerformanceModel):
    """A start takes a second per device, a change of size two, a move three; the rest is as `Costs` says."""

    def cost(self, gangs: Gangs) -> Any:
        per_device = {Act.START: 1.0, Act.RESIZE: 2.0, Act.MOVE: 3.0}
        return np.array([per_device.get(Act(act), np.nan) * gpus for act, gpus in zip(gangs.act.tolist(), gangs.gpus.tolist())])


def test_costs_are_those_of_the_job_and_its_size() -> None:
    rows = [job_row("a", 2)]
    run = simulate(rows, "1x4", in_steps("gpus", {0.0: 2, 50.0: 4}), performance=Heavy(), costs=Costs(start=30.0, resize=30.0))
    assert run.jobs["finish"].to_list() == pytest.approx([50.0 + 8.0 + (100.0 - 48.0) / 2])
    ranked = simulate(one(gpus=4, seconds=10.0), "1x4", "fifo", performance=Heavy(), costs=Costs(start=30.0))
    assert ranked.jobs["finish"].to_list() == pytest.approx([14.0])


@dataclass(frozen=True)
class Meter(PerformanceModel):
    """Measures what jobs have done, and counts how often it looked."""

    def observe(self, gangs: Gangs) -> Observed:
        looks = (gangs.learned or {"looks": 0})["looks"] + 1
        return Observed({"seen": gangs.done.copy()}, {"looks": looks})


@dataclass(frozen=True)
class Dear(PerformanceModel):
    """Its speeds are those of the options; what starting costs, only it knows."""

    about_gangs = False

    def cost(self, gangs: Gangs) -> Any:
        return np.full(len(gangs), 30.0)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "fair-share", EVERYBODY])
def test_costs_are_asked_for_where_speeds_need_not_be(policy: Any) -> None:
    run = simulate(one(), "1x1", policy, performance=Dear())
    assert run.jobs["finish"].to_list() == [40.0]


@dataclass(frozen=True)
class Watcher(PerformanceModel):
    """Its speeds are those of the options; it only looks."""

    about_gangs = False
    seen: list[int] = field(default_factory=list)

    def observe(self, gangs: Gangs) -> Any:
        self.seen.append(len(gangs))


def test_a_model_that_observes_is_shown_every_decision_whichever_loop_could_run_it() -> None:
    model = Watcher()
    rows = [job_row(f"j{k}", 1, 10.0, at=float(k)) for k in range(3)]
    simulate(rows, "1x2", "fifo", performance=model)
    assert model.seen == [0, 1, 2, 1]


def test_what_a_model_measures_and_learns_is_part_of_the_snapshot_and_its_file() -> None:
    seen: list[tuple[object, float]] = []

    def look(snapshot: Snapshot) -> list[Assignment]:
        seen.append((snapshot.learned, float(snapshot.jobs.metric("seen")[0])))
        restored = decode_snapshot(json.loads(json.dumps(encode_snapshot(snapshot))), snapshot.performance)
        assert restored.learned == snapshot.learned
        np.testing.assert_array_equal(restored.jobs.metric("seen"), snapshot.jobs.metric("seen"))
        return [Assignment(0)] if len(snapshot.jobs) else []

    simulate(one(seconds=100.0), "1x1", Says(look, (30.0, 60.0, 90.0)), performance=Meter(), round=30.0)
    assert [learned for learned, _ in seen] == [{"looks": k} for k in range(1, len(seen) + 1)]
    assert np.isnan(seen[0][1])
    assert [measured for _, measured in seen[1:]] == [30.0, 60.0, 90.0]


def test_options_that_list_a_curve_satisfy_a_policy_that_needs_scaling() -> None:
    class Needy(Fifo):
        needs = frozenset({"scaling"})

    rows = [job_row("a", 1, 10.0, options="gpu:1=10|gpu:2=6")]
    assert simulate(rows, "1x2", Needy()).jobs["finish"].to_list() == [10.0]
    with pytest.raises(GantlineError, match="scaling"):
        simulate(one(), "1x1", Needy())
