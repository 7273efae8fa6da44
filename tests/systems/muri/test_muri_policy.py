"""Policy muri on the engine, and the model of stages under it and under other policies."""

from __future__ import annotations

from typing import Any

import pytest
from tests.jobs import by_job, job_row
from tests.probes.scenario import each

from gantline.core.errors import GantlineError
from gantline.core.plan import Mode
from gantline.models.sharing.stage_cycles import DISTURBED, STAGES, StageCycles, Stages, cycle_period
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

LOADER, CRUNCHER, TALKER = Stages(1.0, 0.5, 0.0), Stages(0.5, 1.0, 0.0), Stages(0.25, 0.25, 1.0)


def job(name: str, duration: float, stages: Stages | None, **more: Any) -> dict[str, Any]:
    times = dict(zip(STAGES, stages)) | {"iteration_time": sum(stages)} if stages else dict.fromkeys((*STAGES, "iteration_time"))
    return job_row(name, 1, duration) | times | more


def run(jobs: list[dict[str, Any]], cluster: str = "1x1", policy: Any = "muri", settings: Any = None, **options: Any) -> Run:
    return simulate(jobs, cluster, policy, settings=settings or {}, performance="stage-cycles", **options)


def ends(found: Run) -> dict[str, float]:
    return by_job(found, "finish")


def test_jobs_with_different_bottlenecks_share_a_device_until_one_ends() -> None:
    found = ends(run([job("a", 150, LOADER), job("b", 300, CRUNCHER)]))

    together = 1.5 * DISTURBED[1]  # seconds of an iteration, instead of 1.5 alone
    assert found["a"] == pytest.approx(100 * together)
    assert found["b"] == pytest.approx(100 * together + 150)


def test_jobs_stay_apart_where_there_is_room_where_turns_are_faster_and_without_stage_times() -> None:
    assert ends(run([job("a", 150, LOADER), job("b", 300, CRUNCHER)], "1x2")) == {"a": 150, "b": 300}
    same = Stages(0.0, 1.0, 0.0)
    assert ends(run([job("a", 150, same), job("b", 300, same)], settings={"known": True})) == {"a": 150, "b": 450}
    assert ends(run([job("a", 150, LOADER), job("b", 300, None)], settings={"known": True})) == {"a": 150, "b": 450}


def test_members_hold_the_same_devices_and_follow_each_other_in_the_best_order() -> None:
    found = run([job("a", 150, LOADER, gpus=2), job("b", 150, CRUNCHER, gpus=2), job("c", 150, TALKER, gpus=2)], "1x2")

    first = found.allocations.sort("start").head(3)
    assert [list(held) for held in first["devices"].to_list()] == [[0, 1]] * 3


def test_the_worst_order_makes_the_same_jobs_later() -> None:
    jobs = [job("a", 150, Stages(1.0, 0.2, 0.1)), job("b", 150, Stages(0.2, 1.0, 0.1)), job("c", 150, Stages(0.1, 0.2, 1.0))]

    assert max(ends(run(jobs, settings={"ordering": "worst"})).values()) > max(ends(run(jobs)).values())


def test_the_model_serves_any_policy_and_reads_the_order_from_the_offsets() -> None:
    jobs = (Stages(1.0, 0.2, 0.1), Stages(0.2, 1.0, 0.1), Stages(0.1, 0.2, 1.0))
    first_last = each(lambda snapshot, k: {"group": 1, "mode": Mode.INTERLEAVE, "offset": float(len(snapshot.jobs) - k)})
    found = run([job(name, 1000 * sum(stages), stages) for name, stages in zip("abc", jobs)], policy=first_last)

    assert ends(found)["a"] == pytest.approx(1000 * cycle_period(jobs[::-1]) * DISTURBED[2])
    assert cycle_period(jobs[::-1]) != cycle_period(jobs)


def test_more_than_four_take_turns_by_fours() -> None:
    assert StageCycles().period([LOADER] * 6) == pytest.approx(
        cycle_period((LOADER,) * 4) * DISTURBED[3] + cycle_period((LOADER,) * 2) * DISTURBED[1]
    )


@pytest.mark.parametrize(
    "times",
    [(0.0, 0.0, 0.0, 1.0), (-1.0, 2.0, 0.0, 1.0), (1.0, 1.0, 0.0, 0.0), (1.0, None, 0.0, 1.0)],
    ids=["zero", "below", "no time", "one"],
)
def test_stage_times_that_are_none_are_refused(times: tuple[Any, ...]) -> None:
    with pytest.raises(GantlineError, match=r"job 'a' has stages of .*not all of them 0"):
        run([job("a", 10, LOADER) | dict(zip((*STAGES, "iteration_time"), times)), job("b", 10, LOADER)])


def test_a_trace_without_stage_times_is_refused() -> None:
    with pytest.raises(GantlineError, match="column 'stage_load' is missing"):
        run([job_row("a", 1, 10.0)])
