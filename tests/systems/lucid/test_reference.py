"""Every recorded job of Lucid's simulator: start, end, queue, preemptions, nodes, profiling, pairings and rates; and its loans of nodes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.simulator.references import one_in, reference

from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.importers import import_trace

PLAIN = {"first_start": "start", "finish": "end", "queueing": "queue", "preemptions": "preemptions"}
OF_LUCID = {"profiled": "profiled", "profiling_wait": "prof_wait", "done_in_profiling": "done_in_profiling"}


def run_log(log: Path, policy: str, **settings: object) -> Run:
    cluster = reference("lucid/synthetic_912_vc_config.csv")
    return simulate(import_trace("lucid", log), cluster, policy, settings=settings, regime="lucid", profiles=str(reference("lucid")))


def assert_as_recorded(run: Run, recorded: pl.DataFrame, policy: str) -> None:
    names = PLAIN | (OF_LUCID if policy == "lucid" else {})
    ours = run.reported.with_columns(pl.col("profiled", "done_in_profiling").cast(pl.Int64))
    theirs = recorded.sort("order").with_columns(pl.col("nodes", "rate_changes").fill_null(""))
    for name, original in names.items():
        assert ours[name].to_list() == theirs[original].cast(pl.Int64).to_list(), name
    assert ours["nodes"].to_list() == theirs["nodes"].to_list()
    assert ours["rate_changes"].to_list() == theirs["rate_changes"].to_list()


#: mean JCT, mean and P99.9 of the queue, makespan, as the original prints them
PRINTED = {
    "fifo": (54435.14, 50278.05, 145402, 377244),
    "sjf": (13617.20, 9460.11, 130551, 338324),
    "tiresias": (8003.54, 3825.71, 134291, 309242),
    "lucid": (9357.17, 5160.11, 277268, 403068),
}


@pytest.mark.parametrize("policy", sorted(PRINTED))
def test_every_job_of_the_912_log_is_as_recorded_and_the_summary_as_printed(policy: str) -> None:
    recorded = pl.read_csv(reference("lucid/per_job_912.csv.gz"), infer_schema_length=None).filter(pl.col("policy") == policy)

    run = run_log(reference("lucid/synthetic_912_full_log.csv"), policy)

    assert len(recorded) == 912
    assert_as_recorded(run, recorded, policy)
    summary = run.summary
    found = (round(summary["average_jct"], 2), round(summary["average_queueing"], 2), summary["p999_queueing"], summary["makespan"])
    assert found == PRINTED[policy]


@pytest.mark.parametrize(
    ("workload", "policy"), [(1, "lucid"), (7, "lucid"), (125, "lucid"), (300, "lucid"), (1, "tiresias"), (7, "tiresias")]
)
def test_every_job_and_loan_of_the_small_logs_is_as_recorded(tmp_path: Path, workload: int, policy: str) -> None:
    mine = pl.col("workload") == workload
    log = tmp_path / "log.csv"
    pl.read_csv(reference("lucid/small_workloads_log.csv.gz")).filter(mine).drop("workload").write_csv(log)
    recorded = pl.read_csv(reference("lucid/small_workloads_per_job.csv.gz"), infer_schema_length=None)
    loans = pl.read_csv(reference("lucid/small_workloads_elastic_node.csv")).filter(mine).select("time", "nodes").rows()

    run = run_log(log, policy)

    assert_as_recorded(run, recorded.filter(mine & (pl.col("policy") == policy)), policy)
    assert policy != "lucid" or run.summary["loans"] == [list(loan) for loan in loans]


#: slip that is repaired -> jobs of the 912 log that move, change of the mean JCT in per cent
REPAIRED = {"guest": (221, -2.0), "profile": (676, 1.6), "second": (695, -0.0), "loan": (0, 0.0)}


@pytest.mark.parametrize("slip", one_in(2, sorted(REPAIRED)))
def test_each_repair_moves_as_many_jobs_as_in_the_variants_of_the_original(slip: str) -> None:
    log = reference("lucid/synthetic_912_full_log.csv")
    as_it_is, repaired = run_log(log, "lucid").reported, run_log(log, "lucid", repair=(slip,)).reported

    moved = (as_it_is["first_start"] != repaired["first_start"]) | (as_it_is["finish"] != repaired["finish"])
    change = 100.0 * (repaired["jct"].sum() / as_it_is["jct"].sum() - 1.0)
    assert (moved.sum(), round(change, 1)) == REPAIRED[slip]
