"""`--regime shockwave` on jobs and speeds of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.oracles.held_time import assert_accounts_agree

from gantline.core.errors import GantlineError
from gantline.simulator.simulate import simulate

SPEEDS = """worker_type,job_type,scale_factor,steps_per_s
v100,LM (batch size 10),1,20
v100,LM (batch size 20),1,15
v100,LM (batch size 40),1,10
v100,LM (batch size 80),1,6
v100,ResNet-18 (batch size 128),2,30
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "speeds.csv"
    path.write_text(SPEEDS, encoding="utf-8")
    return path


def job(number: int, **more: object) -> dict[str, object]:
    row = {"job": f"j{number}", "arrival": 60.0 * number, "gpus": 1, "duration": 600.0, "work": 90000, "model": "LM", "batch_size": 10}
    return row | {"mode": "static", "throughput_key": "('LM (batch size 10)', 1)"} | more


@pytest.mark.parametrize("policy", ["shockwave", "gavel.gandiva_fair", "gavel.max_min_fairness", "gavel.min_total_duration",
                                    "gavel.finish_time_fairness", "gavel.max_sum_throughput_perf", "gavel.allox"])  # fmt: skip
def test_every_policy_ends_all_jobs_and_never_holds_more_than_there_is(policy: str, table: Path) -> None:
    jobs = [job(k, mode=("static", "gns")[k % 2]) for k in range(6)]
    jobs.append(job(6, gpus=2, model="ResNet-18", batch_size=128, throughput_key="('ResNet-18 (batch size 128)', 2)", work=20000))
    run = simulate(jobs, "v100:3", policy, regime="shockwave", throughputs=table)
    assert_accounts_agree(run)
    assert run.summary["completed"] == 7
    edges = sorted((time, held) for row in run.allocations.iter_rows(named=True)
                   for time, held in ((row["start"], row["gpus"]), (row["end"], -row["gpus"])))  # fmt: skip
    level = 0
    for _, change in edges:
        level += change
        assert level <= 3


def test_a_growing_batch_ends_a_job_sooner_and_the_planner_may_be_told_or_learn(table: Path) -> None:
    def end(mode: str, **settings: object) -> float:
        run = simulate([job(0, mode=mode)], "v100:1", "shockwave", settings=settings, regime="shockwave", throughputs=table)
        assert run.summary["estimates"] == ("told" if settings else "learned")
        return float(run.jobs["finish"][0])

    assert end("gns") < end("static")
    assert end("gns", compat="shockwave") == end("gns", futures="told") == end("gns")


@pytest.mark.parametrize(
    ("rows", "cluster", "options", "what"),
    [
        ([job(0, mode="wild")], "v100:1", {}, "mode 'wild'"),
        ([job(0, model="GPT", throughput_key="('LM (batch size 10)', 1)")], "v100:1", {}, "model 'GPT'"),
        ([job(0)], "v100:1", {"policy": "srtf"}, "no policy 'srtf'"),
        ([job(0)], "v100:1", {"throughputs": None}, "needs measured speeds"),
        ([job(0)], "v100:1", {"policy": "recorded"}, "no table is given"),
    ],
)
def test_mistakes_are_told(rows: list[dict[str, object]], cluster: str, options: dict[str, object], what: str, table: Path) -> None:
    given = {"policy": "shockwave", "throughputs": table, **options}
    policy = str(given.pop("policy"))
    with pytest.raises(GantlineError, match=what):
        simulate(rows, cluster, policy, regime="shockwave", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("arrivals", "rounds"), [((20000.0,), "0,0\n"), ((0.0, 20000.0), "0,0\n2,0\n")])
def test_time_in_which_nobody_ran_counts_as_run_in_the_round_after_it(
    arrivals: tuple[float, ...], rounds: str, table: Path, tmp_path: Path
) -> None:
    (tmp_path / "rounds.csv").write_text("round,jobs\n" + rounds)
    jobs, how = [job(k, arrival=arrival) for k, arrival in enumerate(arrivals)], {"table": str(tmp_path / "rounds.csv")}
    run = simulate(jobs, "v100:1", "recorded", settings=how, regime="shockwave", throughputs=table)
    assert run.jobs["finish"][0] == 20120.0  # cut off: it is credited more than 1.5 times the 4,774 s of its profile
    assert run.summary["busy_share"] == pytest.approx((run.summary["end"] - 20.0 * (len(arrivals) - 1)) / run.summary["end"])


def test_a_recorded_round_that_holds_too_much_is_refused(table: Path, tmp_path: Path) -> None:
    recorded = tmp_path / "rounds.csv"
    recorded.write_text("round,jobs\n0,0 1\n", encoding="utf-8")
    told = {"table": str(recorded)}
    with pytest.raises(GantlineError, match="hold 2 GPUs"):
        simulate([job(0), job(1, arrival=0.0)], "v100:1", "recorded", settings=told, regime="shockwave", throughputs=table)
