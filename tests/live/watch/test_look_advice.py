"""Advice straight from a look: the jobs that are there, the policy in force as the baseline, and on what the verdict rests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.live.watch import test_kubernetes_snapshot as kubernetes
from tests.live.watch.recordings import NOW, job, node, recording
from tests.live.watch.test_slurm_json import JOBS, TEXT

from gantline import simulate
from gantline.cli.main import main
from gantline.core.errors import UsageError
from gantline.lab.experiment.grid import PolicyChoice
from gantline.live.watch.look_advice import LookedAt, as_trace
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import read_state

FULL = [job("a", 4, ran=600, hosts="node0"), job("b", 4, ran=1200, hosts="node1"), job("c", 4, ran=0, hosts="node2")]
QUEUE = [job("long", 4, waited=500, limit="10:00:00", PRIORITY="9"), job("short", 4, waited=100, limit="5:00")]


def _taken(*jobs: str, nodes: list[str] | None = None, **more: str) -> LookedAt:
    return as_trace(watched(read_state(recording(list(jobs), nodes, **more))))


def _rows(seen: LookedAt) -> dict[str, dict[str, Any]]:
    return {row["job"]: row for row in seen.trace.frame.iter_rows(named=True)}


def _starts(seen: LookedAt, policy: str, **settings: Any) -> dict[str, float]:
    run = simulate(seen.trace, seen.cluster, policy, settings=settings, estimates="limit")
    return dict(run.jobs.select("job", "first_start").iter_rows())


def _advised(source: str, *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    assert main(["advise", "--watch", source, "--policy", "srtf,fifo", "--workers", "1", "-o", "json", *more]) == 0
    told = capsys.readouterr()
    return json.loads(told.out), told.err


def test_running_jobs_have_what_is_left_of_their_limits_and_start_first() -> None:
    seen = _taken(*FULL, *QUEUE)
    assert seen.cluster == "a100:3x4/16c"
    assert {name: row["duration"] for name, row in _rows(seen).items()} == {"a": 3000, "b": 2400, "c": 3600, "long": 36_000, "short": 300}
    for policy in ("slurm", "fifo"):
        starts = _starts(seen, policy)
        assert {name for name, start in starts.items() if start == 0} == {"a", "b", "c"}
        assert starts["long"] == 2400
    assert _starts(seen, "srtf")["short"] == 1


def test_priorities_are_those_of_the_look_and_tiers_come_first() -> None:
    rows = _rows(_taken(*FULL, job("old", 4, waited=43_200, PRIORITY="700"), job("new", 4, PRIORITY="300")))
    assert (rows["old"]["priority"], rows["new"]["priority"]) == (pytest.approx(700), pytest.approx(300))
    partitions = "PartitionName=main PriorityTier=1 State=UP\nPartitionName=top PriorityTier=5 State=UP"
    both = [node(f"node{k}", partitions="main,top") for k in range(3)]
    starts = _starts(_taken(*FULL, *QUEUE, job("vip", 4, PARTITION="top"), nodes=both, partitions=partitions), "slurm")
    assert starts["vip"] < starts["long"]


def test_spans_cpus_and_types_that_begin_with_a_digit_are_kept() -> None:
    nodes = [node("x", kind="3090"), node("y", kind="3090")]
    seen = _taken(job("wide", 2, NODES="2", TRES_ALLOC="cpu=8,node=2"), job("cpu", 0, TRES_ALLOC="cpu=4,node=1"), nodes=nodes)
    assert seen.cluster == "gpu-3090:2x4/16c"
    assert {name: row["options"] for name, row in _rows(seen).items()} == {
        "wide": "gpu-3090:4@2/8=3600",
        "cpu": "gpu-3090:0/4=3600",
    }
    assert _starts(seen, "slurm") == {"wide": 1, "cpu": 1}


def test_closed_nodes_and_what_is_held_without_an_end_are_no_part_of_the_cluster() -> None:
    nodes = [node("a"), node("b"), node("c", state="MIXED+DRAIN"), node("d", state="DOWN"), node("e"), node("f")]
    windows = [
        f"ReservationName=now StartTime={NOW - 60} EndTime={NOW + 600} Nodes=e Users=root State=ACTIVE",
        f"ReservationName=then StartTime={NOW + 60} EndTime={NOW + 600} Nodes=f Users=root State=INACTIVE",
    ]
    seen = _taken(
        job("endless", 3, ran=5, hosts="a", limit="UNLIMITED", CPUS="6", TRES_ALLOC="cpu=6,node=1"),
        job("drains", 2, ran=5, hosts="c"),
        job("waits", 4),
        job("unknown", 1, limit="UNLIMITED"),
        job("large", 4, NODES="3"),
        nodes=nodes,
        reservations="\n".join(windows),
    )
    assert seen.cluster == "a100:1x1/10c,a100:2x4/16c"
    assert set(_rows(seen)) == {"waits"}
    assert [note for note in seen.notes if "left out" in note or "not followed" in note] == [
        "1 job left out, which ask for more than is open",
        "1 job left out, which wait and have no time limit",
        "1 running jobs have no time limit; what they hold is left out",
        "1 running jobs hold nodes that are closed; what they hold is left out",
        "3 nodes that are down, drained or reserved now are left out",
        "1 reservations that begin later are not followed",
    ]


def test_text_and_json_give_the_same_advice_with_slurm_as_the_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for name, jobs in (("text", TEXT), ("json", json.dumps({"jobs": JOBS}))):
        (tmp_path / name).write_text(recording(jobs))
        told.append(_advised(f"slurm:{tmp_path / name}", capsys=capsys)[0])
    assert told[0] == told[1]
    assert {(row["policy"], row["cluster"]) for row in told[0]["means"]} == {
        (policy, cluster) for policy in ("slurm (in force)", "srtf", "fifo") for cluster in ("a100:3x4/16c", "a100:4x4/16c")
    }
    assert any("srtf against slurm (in force)" in text for text in told[0]["advice"])
    assert told[0]["advice"][-2:] == [
        "This rests on 4 jobs which slurm showed at 2026-11-17 20:40:54 UTC: 1 running, with what is left of them, and 3 waiting; "
        "times count from then.",
        "Durations are time limits (estimates): each job is taken to run for all of its own.",
    ]


def test_a_look_at_kubernetes_is_advised_on_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = [
        kubernetes.node("n1"),
        kubernetes.pod("runs", 4, "n1", activeDeadlineSeconds=600),
        kubernetes.pod("long", 4, age=50, activeDeadlineSeconds=6000),
        kubernetes.pod("short", 4, age=10, activeDeadlineSeconds=60),
        kubernetes.pod("unknown", 1),
    ]
    file, page = tmp_path / "now.json", tmp_path / "advice.html"
    file.write_text(json.dumps({"kind": "List", "items": items}))
    os.utime(file, (kubernetes.NOW, kubernetes.NOW))
    told, noted = _advised(f"kubernetes:{file}", "--page", str(page), capsys=capsys)
    means = {row["policy"]: row["jct_mean"] for row in told["means"] if "1x4" in row["cluster"]}
    assert means["fifo (in force)"] == pytest.approx((500 + 499 + 6000 + 499 + 6000 + 60) / 3)
    assert means["srtf"] < means["fifo (in force)"]
    assert "This rests on 3 jobs which kubernetes showed at 2023-11-14 22:13:20 UTC: 1 running" in told["advice"][-2]
    assert "1 job left out, which wait and have no time limit" in noted
    assert "This rests on 3 jobs" in page.read_text(encoding="utf-8")


def test_the_policy_in_force_is_not_compared_with_itself() -> None:
    seen = _taken(*FULL, *QUEUE)
    same = PolicyChoice("slurm", dict(seen.present.settings))
    assert [one.title for one in seen.beside_present([same, PolicyChoice("las")])] == ["slurm (in force)", "las"]


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ([], "no job waits for room"),
        (FULL, "no job waits for room"),
        ([job("1", REASON="JobHeldUser")], r"no job waits for room.*1 job left out.*JobHeldUser"),
        ([job("1", limit="UNLIMITED"), job("2", limit="UNLIMITED")], "none of the 2 jobs that wait has a time limit"),
    ],
)
def test_a_look_on_which_nothing_can_be_said_is_refused(jobs: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        _taken(*jobs)


def test_a_cluster_without_open_nodes_is_refused() -> None:
    with pytest.raises(UsageError, match="no node is open"):
        _taken(job("1"), nodes=[node("a", state="IDLE+DRAIN")])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["jobs.csv", "--watch", "slurm"], "TRACE: a look shows the jobs and the cluster"),
        (["--watch", "slurm", "--cluster", "2x4"], "--cluster: a look shows the jobs and the cluster"),
        (["--watch", "slurm", "--format", "sacct"], "--format: a look shows the jobs and the cluster"),
        (["--watch", "nomad"], "'nomad' cannot be watched"),
        (["--cluster", "2x4"], "no jobs are named"),
        (["jobs.csv"], "no cluster is named"),
    ],
)
def test_mistakes(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", *arguments, "--policy", "srtf"]) == 2
    assert said in capsys.readouterr().err
