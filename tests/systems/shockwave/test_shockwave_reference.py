"""Shockwave's published simulations, again: schedules followed job by job, baselines without a solver, the planner's inputs and optima."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.simulator.references import one_in, reference

from gantline.core.arrays import Bools, Floats
from gantline.simulator.simulate import simulate
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob, fairness, mean_contention, profile, steps_per_epoch
from gantline.systems.shockwave.imitation.loop import ShockwaveRounds
from gantline.systems.shockwave.imitation.planner import Planner
from gantline.systems.shockwave.imitation.shares import RULES, ShareTurns
from gantline.systems.shockwave.policies import PlanningWindow, plan_counts, plan_window
from gantline.traces.files.speeds import read_throughputs
from gantline.traces.importers import import_trace

PUBLISHED = [
    *(("tacc_32gpus", name) for name in RULES),
    *(("tacc_32gpus", name) for name in ("shockwave", "old_shockwave", "new_orig_hyperparam_shockwave")),
    *(("tacc_32gpus_comparison", name) for name in RULES if name != "gandiva_fair"),
    ("tacc_32gpus_comparison", "shockwave"),
]


@cache
def rows(name: str) -> list[dict[str, str]]:
    with reference(f"shockwave/{name}").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def trace_file(tag: str) -> Path:
    jobs, scale = tag.split("_")
    return next(reference("shockwave/traces").glob(f"{jobs}_0.2_5_{scale}_*"))


@cache
def speeds() -> dict[tuple[str, int], float]:
    table = read_throughputs(reference("shockwave/isolated_throughput_tacc.csv"))
    alone = table.packed.alone[:, table.types.index("v100")]
    return {key: float(value) for key, value in zip(table.keys, alone)}


@cache
def frame_of(tag: str) -> pl.DataFrame:
    return import_trace("gavel", trace_file(tag)).frame


def jobs_of(tag: str) -> list[ShockwaveJob]:
    def speed(model: str, batch: int, gang: int) -> float:
        return speeds().get((f"{model} (batch size {batch})", gang), float("nan"))

    return [
        ShockwaveJob(k, row["model"], row["mode"], int(row["gpus"]), int(row["batch_size"]), row["arrival"], int(row["work"]), speed)
        for k, row in enumerate(frame_of(tag).iter_rows(named=True))
    ]


class Follow:
    """Starts whom a schedule names."""

    def __init__(self, schedule: dict[int, set[int]]) -> None:
        self.schedule = schedule

    def round_ended(self, rounds: ShockwaveRounds, closed: Sequence[ShockwaveJob]) -> None:
        pass

    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        return [job for job in rounds.active if job.index in self.schedule.get(rounds.passes, ())]


@cache
def schedules() -> dict[tuple[str, str], dict[int, set[int]]]:
    found: dict[tuple[str, str], dict[int, set[int]]] = defaultdict(dict)
    for row in rows("runs/published_schedules.csv"):
        found[row["set"], row["policy"]][int(row["round"])] = {int(word) for word in row["job_indices"].split()}
    return found


@pytest.mark.parametrize(("which", "policy"), one_in(8, PUBLISHED))
def test_a_published_schedule_gives_every_published_number(which: str, policy: str) -> None:
    jobs = jobs_of("120_100")
    rounds = ShockwaveRounds(jobs, 32, Follow(schedules()[which, policy]), patience=1.0 if "comparison" in which else 1.5)
    rounds.run()
    for row in rows("published_results_per_job.csv"):
        if (row["set"], row["policy"], row["kind"]) == (which, policy, "simulation"):
            job = jobs[int(row["job_index"])]
            jct = job.finish - job.arrival
            assert jct == pytest.approx(float(row["jct_s"]), abs=0.0051)
            assert fairness(jct, job, len(jobs) / 32) == pytest.approx(float(row["rho_static"]), abs=1.1e-5)
            lived = mean_contention(rounds.counts, 32, *rounds.lives[job.index])
            assert fairness(jct, job, lived) == pytest.approx(float(row["rho_themis"]), abs=1.1e-5)
    (told,) = [r for r in rows("published_results_summary.csv") if (r["set"], r["policy"], r["kind"]) == (which, policy, "simulation")]
    assert rounds.clock == pytest.approx(float(told["makespan_s"]), abs=0.051)
    assert rounds.busy / 32 / rounds.clock == pytest.approx(float(told["cluster_util"]), abs=5.1e-5)
    assert rounds.passes == int(told["rounds"])


@pytest.mark.parametrize(
    ("tag", "gpus", "policy"),
    one_in(
        2,
        [
            ("120_100", 24, "gandiva_fair"),
            ("220_100", 64, "gandiva_fair"),
            ("120_100", 24, "allox"),
            ("120_100", 32, "allox"),
        ],
    ),
)
def test_baselines_that_leave_no_choice_equal_the_artifact_job_by_job(tag: str, gpus: int, policy: str) -> None:
    jobs = jobs_of(tag)
    ShockwaveRounds(jobs, gpus, ShareTurns(RULES[policy])).run()
    wanted = {
        int(row["job_index"]): float(row["jct_s"])
        for row in rows("runs/artifact_runs_per_job.csv")
        if (row["trace"], int(row["gpus"]), row["policy"]) == (tag, gpus, policy)
    }
    assert {job.index: job.finish - job.arrival for job in jobs} == pytest.approx(wanted, abs=0.006)


@pytest.mark.parametrize(
    ("policy", "makespan", "jct"),
    one_in(
        6,
        [
            ("max_min_fairness", 0.01, 0.005),
            ("min_total_duration", 0.0001, 0.0001),
            ("max_sum_throughput_perf", 0.02, 0.02),
            ("finish_time_fairness", 0.02, 0.035),
            ("allox", 0.01, 0.01),
        ],
    ),
)
def test_baselines_with_a_choice_stay_within_its_reach_of_the_published_table(policy: str, makespan: float, jct: float) -> None:
    jobs = jobs_of("120_100")
    rounds = ShockwaveRounds(jobs, 32, ShareTurns(RULES[policy]))
    rounds.run()
    told = next(r for r in rows("published_results_summary.csv") if (r["set"], r["policy"]) == ("tacc_32gpus", policy))
    mean = sum(job.finish - job.arrival for job in jobs) / len(jobs)
    assert rounds.clock == pytest.approx(float(told["makespan_s"]), rel=makespan)
    assert mean == pytest.approx(float(told["avg_jct_s"]), rel=jct)


@pytest.mark.long
@pytest.mark.parametrize("gpus", [24, 32])
def test_ossp_stops_where_the_solver_of_the_artifact_does(gpus: int) -> None:
    """All but a few jobs end in the same second: those that trade places in a round with equal priorities."""
    run = {"policy": "min_total_duration"} | ({"gpus": "24"} if gpus == 24 else {"set": "tacc_32gpus", "kind": "simulation"})
    recorded = rows("runs/artifact_runs_per_job.csv" if gpus == 24 else "published_results_per_job.csv")
    wanted = {int(row["job_index"]): float(row["jct_s"]) for row in recorded if run.items() <= row.items()}
    jobs = jobs_of("120_100")
    ShockwaveRounds(jobs, gpus, ShareTurns(RULES["min_total_duration"])).run()
    assert len(wanted) == 120
    assert sum(abs(job.finish - job.arrival - wanted[job.index]) < 0.006 for job in jobs) >= 115


@cache
def plans_of_the_recorded_run() -> dict[int, tuple[list[ShockwaveJob], PlanningWindow, dict[str, Floats]]]:
    """What every re-plan was made from, with the recorded schedule followed."""
    schedule = {int(row["round"]): {int(word) for word in row["job_indices"].split()} for row in rows("runs/planning_schedule.csv")}
    found = {}

    class Watched(Planner):
        def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
            if rounds.changed or self._due:
                found[self.number] = self.question(rounds)
            return Follow(schedule).choose(rounds)

    ShockwaveRounds(jobs_of("120_100"), 32, Watched()).run()
    return found


def test_the_planner_believes_what_the_artifact_believed() -> None:
    compared = 0
    for row in rows("runs/planning_inputs.csv"):
        jobs, window, more = plans_of_the_recorded_run()[int(row["round"])]
        k = [job.index for job in jobs].index(int(row["job_index"]))
        got = [window.done[k], window.duration[k], window.remaining[k], more["target"][k], more["lateness"][k], window.priority[k]]
        names = ("epochs_done", "mean_epoch_s", "remaining_s", "target_s", "rho_projected", "priority")
        assert got == pytest.approx([float(row[name]) for name in names], rel=2e-5, abs=2e-5)
        compared += 1
    assert compared > 1000


@pytest.mark.long
def test_the_window_reaches_the_optimum_that_the_artifacts_model_has() -> None:
    for row in rows("runs/planning_objectives.csv"):
        _, window, _ = plans_of_the_recorded_run()[int(row["round"])]
        _, value = plan_counts(replace(window, gap=1e-6))
        assert value == pytest.approx(float(row["objective_optimum"]), abs=1e-4)


def worst_after(number: int, plan: Bools) -> float:
    """The ratio to the fair finish time of the job that is latest after a plan, if what is left is done on an equal share."""
    jobs, window, more = plans_of_the_recorded_run()[number]
    share, turns = min(1.0, 32 / len(jobs)), np.arange(1, window.rounds + 1)
    left = np.maximum(0.0, window.remaining - np.minimum(plan.sum(axis=1) * window.length, (window.epochs - window.done) * window.duration))
    end = window.length * np.where(left > 0.0, number + window.rounds, number + (plan * turns).max(axis=1))
    return float(((end + left / share) / more["target"]).max())


@pytest.mark.long
def test_plans_leave_the_latest_job_as_late_as_the_recorded_schedule_does() -> None:
    schedule = {int(row["round"]): {int(word) for word in row["job_indices"].split()} for row in rows("runs/planning_schedule.csv")}
    ours, theirs = [], []
    for number in (32, 48, 64, 79, 96, 106, 118, 133, 144):
        jobs, window, _ = plans_of_the_recorded_run()[number]
        ours.append(worst_after(number, plan_window(window)))
        followed = [[job.index in schedule.get(number + at, ()) for at in range(window.rounds)] for job in jobs]
        theirs.append(worst_after(number, np.array(followed)))
    assert 1.4 < min(ours) < max(ours) < 2.0
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)


@pytest.mark.parametrize("tag", one_in(5, ["120_100", "220_100", "460_100", "900_100", "900_1000"]))
def test_profiles_have_the_published_regimes(tag: str) -> None:
    for job, row in zip(frame_of(tag).iter_rows(named=True), rows(f"regimes_{tag}.csv"), strict=True):
        first = int(job["batch_size"])
        epochs = -(-int(job["work"]) // steps_per_epoch(job["model"], first))
        sizes = profile(job["model"], job["mode"], int(job["gpus"]), first, epochs)
        told = [int(size) for run in row["batch_size_runs"].split() for size, count in [run.split("x")] for _ in range(int(count))]
        assert sizes == told


def test_the_command_line_follows_a_recorded_schedule(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    lines = [f"{number},{' '.join(map(str, sorted(jobs)))}" for number, jobs in schedules()["tacc_32gpus", "shockwave"].items()]
    table.write_text("\n".join(["round,jobs", *lines]), encoding="utf-8")
    run = simulate(
        import_trace("gavel", trace_file("120_100")),
        "v100:32",
        "recorded",
        settings={"table": str(table)},
        regime="shockwave",
        throughputs=reference("shockwave/isolated_throughput_tacc.csv"),
    )
    told = next(r for r in rows("published_results_summary.csv") if (r["set"], r["policy"]) == ("tacc_32gpus", "shockwave"))
    assert run.summary["average_jct"] == pytest.approx(float(told["avg_jct_s"]), abs=0.051)
    assert run.summary["rho_static_worst"] == pytest.approx(float(told["worst_rho_static"]), abs=5.1e-4)
    assert run.summary["rho_themis_worst"] == pytest.approx(float(told["worst_rho_themis"]), abs=5.1e-4)
