"""The table of jobs of a run in which jobs share devices: partners, changes of speed, nodes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from tests.probes.scenario import IN_ONE_GROUP, WIDE_AND_SLIM

from gantline.simulator.simulate import simulate


def test_each_job_names_its_partners_its_nodes_and_how_often_its_speed_changed(tmp_path: Path) -> None:
    alone = {"job": "alone", "arrival": 500.0, "gpus": 1, "duration": 10.0, "model": "vision"}
    run = simulate([*WIDE_AND_SLIM, alone], "2x1", IN_ONE_GROUP)

    found = {row["job"]: row for row in run.reported.iter_rows(named=True)}
    shown = {name: (row["partners"], row["rate_changes"], row["nodes"]) for name, row in found.items()}
    assert shown == {"wide": ("slim", 1, "node0|node1"), "slim": ("wide", 0, "node0"), "alone": ("", 0, "node0")}
    assert run.reported.columns[:4] == ["job", "arrival", "first_start", "finish"]


def test_a_run_that_does_not_share_has_the_usual_columns() -> None:
    run = simulate(WIDE_AND_SLIM, "1x4", "fifo")

    assert run.reported.equals(run.jobs)
    assert not {"partners", "rate_changes", "nodes"} & set(run.reported.columns)


def test_a_new_job_makes_room_for_its_count(tmp_path: Path) -> None:
    from gantline.core.inputs import Submit

    late = [Submit(10.0 + k, {"id": f"late{k}", "gpus": 1}, work=30.0) for k in range(3)]
    run = simulate(WIDE_AND_SLIM, "2x1", IN_ONE_GROUP, inputs=late)

    assert run.reported.filter(pl.col("job") == "late2")["partners"].item() != ""
    assert run.reported["rate_changes"].sum() > 3
