"""Regime muri by hand: what an event costs, who shares, the queues, AntMan's reservations, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.jobs import by_job, job_row

from gantline.core.errors import GantlineError
from gantline.models.sharing.stage_cycles import ALONE, DISTURBED
from gantline.simulator.simulate import simulate
from gantline.systems.muri.imitation.clock import read_jobs
from gantline.systems.muri.imitation.schedules import TiresiasSchedule
from gantline.systems.muri.traces import RestartOverheads
from gantline.traces.trace import Trace

LOADER, CRUNCHER = (1.0, 0.5, 0.0), (0.5, 1.0, 0.0)  # seconds of loading, computing, communicating
PAIR = 1.5 * DISTURBED[1]  # their period together: one loads while the other computes


def job(name: str, iterations: int, stages: tuple[float, float, float] = LOADER, **more: Any) -> dict[str, Any]:
    step = sum(stages)
    row = job_row(name, 1, iterations * step, model="net", iterations=float(iterations))
    row |= {"iteration_time": step, "opportunistic": 0.0}
    return row | dict(zip(("stage_load", "stage_gpu", "stage_network"), stages)) | more


def ends(jobs: list[dict[str, Any]], policy: str = "muri", cluster: str = "1x1", **settings: Any) -> dict[str, float]:
    run = simulate(pl.DataFrame(jobs), cluster, policy, settings=settings, regime="muri")
    return by_job(run, "finish")


def test_a_job_that_sees_no_event_pays_nothing_and_each_event_costs_the_others_ten_seconds() -> None:
    assert ends([job("a", 100)]) == {"a": pytest.approx(100 * 1.5 * ALONE)}

    found = ends([job("a", 100), job("b", 20, arrival=50.0)], cluster="1x2")

    assert found["b"] == pytest.approx(50 + 20 * 1.5 * ALONE)
    assert found["a"] == pytest.approx(100 * 1.5 * ALONE + 20)  # the arrival and the end of b


@pytest.mark.parametrize("known", [True, False])
def test_jobs_that_interleave_share_where_the_cluster_is_too_small(known: bool) -> None:
    found = ends([job("a", 100), job("b", 100, CRUNCHER)], known=known)

    assert found == {"a": pytest.approx(100 * PAIR), "b": pytest.approx(100 * PAIR)}


def test_jobs_stay_apart_where_there_is_room_or_where_turns_are_faster() -> None:
    assert ends([job("a", 100), job("b", 100, CRUNCHER)], cluster="1x2")["a"] == pytest.approx(100 * 1.5 * ALONE)

    found = ends([job("a", 10, (0.0, 1.0, 0.0)), job("b", 20, (0.0, 1.0, 0.0))], known=True)

    assert found == {"a": pytest.approx(10 * ALONE), "b": pytest.approx(30 * ALONE)}


def test_without_matching_neighbours_in_the_order_share_although_others_would_fit_better() -> None:
    jobs = [job("a", 100), job("b", 110), job("c", 120, CRUNCHER), job("d", 130, CRUNCHER)]

    matched = ends(jobs, cluster="1x2", known=True, most=2)
    chunks = ends(jobs, cluster="1x2", known=True, most=2, matching=False)

    assert matched["a"] == pytest.approx(100 * PAIR)
    assert chunks["a"] > matched["a"]


def test_tiresias_lets_a_newcomer_pass_a_job_that_has_had_its_share() -> None:
    jobs = [job("old", 4000), job("new", 100, arrival=4000.0)]

    assert ends(jobs, "tiresias")["new"] == pytest.approx(4000 + 100 * 1.5 * ALONE)


def test_tiresias_takes_a_demotion_nearer_than_the_clock_can_tell_for_one_that_is_due() -> None:
    (one,) = read_jobs(Trace.from_frame(pl.DataFrame([job("a", 4000)])), RestartOverheads())
    schedule, now = TiresiasSchedule(1), 1_050_000.0
    schedule.arrive(one)
    schedule.decide(now)
    one.ran = 3250.0 - 1e-10  # now + 1e-10 is now: an event would find nothing changed, for ever

    assert schedule.look_again(now) == math.inf


def test_themis_prefers_a_job_that_has_never_run() -> None:
    jobs = [job("old", 4000), job("new", 100, arrival=100.0)]

    assert ends(jobs, "themis")["new"] == pytest.approx(100 + 100 * 1.5 * ALONE)


def test_antman_keeps_a_guaranteed_job_at_its_speed_and_fits_the_guest_into_its_gaps() -> None:
    # two iterations of the host for one of the guest: a second of loading while the host computes, then computing while the host loads
    found = ends([job("host", 100, (0.5, 1.0, 0.0)), job("guest", 50, (1.0, 0.5, 0.0), opportunistic=1.0)], "antman")

    assert found["host"] == pytest.approx(100 * 1.5 * ALONE)
    assert found["guest"] == pytest.approx(50 * 2 * 1.5 * ALONE)


def test_antman_reserves_what_there_is_for_a_gang_that_does_not_fit() -> None:
    jobs = [job("first", 100), job("wide", 10, gpus=2, arrival=1.0), job("late", 10, arrival=2.0)]
    found = ends(jobs, "antman", cluster="1x2")

    assert found["wide"] < found["late"]  # the free GPU is kept for the wide job


def test_antman_takes_jobs_of_one_moment_by_their_numbers_wherever_they_stand_in_the_trace() -> None:
    found = ends([job("10", 10), job("9", 10)], "antman")

    assert found["9"] < found["10"]


def test_what_the_original_has_nothing_like_is_refused() -> None:
    def refused(what: str, *, jobs: list[dict[str, Any]] | None = None, cluster: str = "1x1", policy: str = "muri", **options: Any) -> None:
        with pytest.raises(GantlineError, match=what):
            simulate(pl.DataFrame(jobs or [job("a", 10)]), cluster, policy, regime="muri", **options)

    refused("one type", cluster="a:1x1,b:1x1")
    refused("column 'stage_load' is missing", jobs=[{name: value for name, value in job("a", 10).items() if name != "stage_load"}])
    refused("stages of", jobs=[job("a", 10) | {"stage_load": 0.0, "stage_gpu": 0.0}])
    refused("stages of", jobs=[job("a", 10) | {"stage_load": -1.0}])


def test_a_run_that_is_cut_short_says_what_was_done_by_then() -> None:
    run = simulate(pl.DataFrame([job("a", 100), job("b", 1000)]), "1x1", "srtf", regime="muri", until=300.0)

    assert run.jobs["state"].to_list() == ["completed", "waiting"]
    assert run.jobs["service"].to_list() == pytest.approx([152.25, 147.75])


def test_what_is_reported_names_partners_and_counts_changes_of_pace() -> None:
    shared = simulate(pl.DataFrame([job("a", 100), job("b", 200, CRUNCHER)]), "1x1", "muri", regime="muri").reported

    assert shared.select("job", "partners", "rate_changes", "nodes").rows() == [("a", "b", 0, "node0"), ("b", "a", 1, "node0")]
    alone = simulate(pl.DataFrame([job("a", 100)]), "1x1", "srtf", regime="muri").reported

    assert alone.select("job", "partners", "rate_changes", "nodes").rows() == [("a", "", 0, "node0")]


def test_what_an_event_costs_is_read_from_a_folder_by_gpus_and_model(tmp_path: Path) -> None:
    jobs = pl.DataFrame([job("a", 100), job("b", 20, arrival=50.0)])

    def end(rows: str) -> float:
        (tmp_path / "restart_overhead_s.csv").write_text(f"num_gpu,model,overhead_s\n{rows}")
        run = simulate(jobs, "1x2", "srtf", regime="muri", profiles=str(tmp_path))
        return float(run.jobs["finish"][0])

    assert end("1,net,3\n2,net,40\n") == pytest.approx(100 * 1.5 * ALONE + 2 * 3)
    with pytest.raises(GantlineError, match="a second figure for net on 1 GPUs"):
        end("1,net,3\n1,net,4\n")
    with pytest.raises(GantlineError, match=r":2: .*is -3"):
        end("1,net,-3\n")
    with pytest.raises(GantlineError, match="holds no restart_overhead"):
        simulate(jobs, "1x2", "srtf", regime="muri", profiles=str(tmp_path.parent))
