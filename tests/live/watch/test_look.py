"""Advice straight from a look: the jobs that are there, the policy in force as the baseline, and on what the verdict rests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.live.watch import test_kubernetes_snapshot as kubernetes
from tests.live.watch.recordings import NOW, job, node, recording
from tests.live.watch.simulated_slurm import Queue, shown
from tests.live.watch.test_slurm_snapshot import JOBS, TEXT
from tests.typed import typed

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.inputs import Submit
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.experiment.grid import PolicyChoice
from gantline.lab.questions.forecast import Setup
from gantline.live.watch.held_against import HeldForecasts, hold_against
from gantline.live.watch.look_advice import LookedAt, as_trace
from gantline.live.watch.slurm_snapshot import shares_of_limits, watched
from gantline.live.watch.slurm_state import read_state
from gantline.live.watch.watched import Document
from gantline.simulator.rollout import rollout
from gantline.traces.files.policies import load_policy

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
    assert typed(f"advise --watch {source} --policy srtf,fifo --workers 1 -o json", *more) == 0
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
        ("jobs.csv --watch slurm", "TRACE: a look shows the jobs and the cluster"),
        ("--watch slurm --cluster 2x4", "--cluster: a look shows the jobs and the cluster"),
        ("--watch slurm --format sacct", "--format: a look shows the jobs and the cluster"),
        ("--watch nomad", "'nomad' cannot be watched"),
        ("--cluster 2x4", "no jobs are named"),
        ("jobs.csv", "no cluster is named"),
    ],
)
def test_mistakes(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(f"advise {arguments}", "--policy", "srtf") == 2
    assert said in capsys.readouterr().err


# A look rolled forward is what Slurm does next: with true run times and the jobs that really come, every start is exact.
#
# So forecasts err only as far as run times and newcomers are unknown.


@pytest.mark.parametrize("seed", [4, 6, 9])
def test_with_the_truth_every_start_is_exact(seed: int) -> None:
    """Half an hour after a full one."""
    load, before, hours = 1.6, 1.0, 0.5
    jobs = Queue(load=load, load_before=load, seed=seed, before=before, hours=hours).jobs()
    now, end = before * 3600.0, (before + hours) * 3600.0
    look, later = (watched(read_state(shown(jobs, at, accounting=True))) for at in (now, end))
    zero = look.zero - (look.at - now)
    true = {job["job"]: job for job in jobs}
    came = [job for job in jobs if now < job["arrival"] <= end]
    asked = later.arrivals[-len(came) :]  # as a later look has them, priorities without their age
    newcomers = [_submitted(job, entry, zero) for job, entry in zip(came, asked)]
    snapshot = decode_snapshot(look.snapshot)
    work = np.array([[true[name]["duration"] for name in snapshot.jobs.ids]], dtype=np.float64)
    policy = load_policy(look.policy, look.settings)
    rolled = rollout(snapshot, policy, draws=work, until=end - zero, newcomers=lambda _: newcomers)[0]
    starts = {name: at + zero for name, at in zip(snapshot.jobs.ids, rolled.start[0])}
    waited = [name for name in look.queue if true[name]["start"] <= end]
    assert len(waited) >= 5
    assert {name: starts[name] for name in waited} == {name: true[name]["start"] for name in waited}


def _submitted(job: Mapping[str, Any], entry: Document, zero: float) -> Submit:
    known = {key: value for key, value in entry.items() if key != "arrival"}
    return Submit(job["arrival"] - zero, {**known, "id": job["job"]}, float(job["duration"]))


# An hour beside a simulated Slurm whose queue grows: nine of ten starts come by their P90, and half or so by their P50.


@pytest.mark.long
def test_nine_of_ten_starts_of_a_growing_hour_come_by_their_p90(tmp_path: Path) -> None:
    """Starts of an hour depend on each other: one job that uses all of its limit delays ten. docs/watch.md has more hours than this one."""
    Queue(load=1.6, load_before=0.8, seed=11, every=1200.0).record(tmp_path)
    held = hold_against(tmp_path, Setup(samples=10))
    assert held.forecasts >= 20
    assert held.by_p90 >= 0.9 * held.forecasts
    assert 0.35 * held.forecasts <= held.by_p50 <= 0.7 * held.forecasts


def test_a_growing_half_hour_is_forecast_as_it_always_was(tmp_path: Path) -> None:
    """What is drawn is the same every time, so that every count is; how often forecasts hold, so few starts cannot say."""
    Queue(load=1.6, load_before=0.8, seed=11, before=1.0, hours=0.5, every=900.0).record(tmp_path)
    assert hold_against(tmp_path, Setup(samples=10)) == HeldForecasts(9, 4, 9, 5, 5, 12, 0, 3)


# Forecasts beside Slurm are held against starts: which count, and what they are made from.

PAST = "JobID|User|Partition|Submit|Start|ElapsedRaw|Timelimit|State|AllocTRES|ReqTRES|NNodes|Priority"
HELD = [job(f"9{k}", 4, ran=60, hosts=f"node{k}", limit="0:10:00") for k in range(3)]


def _kept(folder: Path, *looks: tuple[int, list[str], str]) -> HeldForecasts:
    """Recordings so many seconds from now, of jobs and of accounting."""
    for seconds, jobs, past in looks:
        text = recording(jobs, time=f"{NOW + seconds} +0000", past=f"{PAST}\n{past}")
        (folder / f"{NOW + seconds}.txt").write_text(text, encoding="utf-8")
    return hold_against(folder)


def test_a_job_that_came_and_went_between_two_looks_counts_where_accounting_knows_its_start(tmp_path: Path) -> None:
    ended = f"7|ann|main|{NOW}|{NOW + 5}|20|00:10:00|COMPLETED|cpu=1,gres/gpu=4|cpu=1,gres/gpu=4|1|1"
    assert _kept(tmp_path, (0, [*HELD, job("7", 4)], ""), (3600, [], ended)) == HeldForecasts(1, 1, 1, 1, 1, 0, 0, 2)


def test_a_job_whose_start_nothing_shows_is_left_out_and_reported(tmp_path: Path) -> None:
    held = _kept(tmp_path, (0, [*HELD, job("7", 4)], ""), (3600, [job("8", STATE="CANCELLED")], ""))
    assert (held.forecasts, held.gone) == (0, 1)
    assert "1 more jobs were gone" in held.lines()[-1]


def test_accounting_that_does_not_say_when_a_job_started_shows_no_start(tmp_path: Path) -> None:
    ended = f"7|ann|main|{NOW}||20|00:10:00|COMPLETED|cpu=1,gres/gpu=4|cpu=1,gres/gpu=4|1|1"
    held = _kept(tmp_path, (0, [*HELD, job("7", 4)], ""), (3600, [], ended))
    assert (held.forecasts, held.gone) == (0, 1)


def test_a_job_that_waits_beyond_its_p90_counts_as_late_and_before_it_as_open(tmp_path: Path) -> None:
    for name in ("late", "open"):
        (tmp_path / name).mkdir()
    waits = [*HELD, job("7", 4)]
    assert _kept(tmp_path / "late", (0, waits, ""), (3600, waits, "")) == HeldForecasts(1, 0, 0, 1, 0, 0, 0, 2)
    assert _kept(tmp_path / "open", (0, waits, ""), (30, waits, "")) == HeldForecasts(0, 0, 0, 0, 0, 1, 0, 2)


def test_an_early_start_is_not_due_before_its_p90_and_a_note_counts_those_that_are(tmp_path: Path) -> None:
    held = _kept(tmp_path, (0, [*HELD, job("7", 4)], ""), (30, [job("7", 4, ran=10, hosts="node0")], ""))
    assert (held.forecasts, held.by_p90, held.due) == (1, 1, 0)
    assert held.lines()[1] == "note: of 0 whose P90 has passed, 0 came by it"


@pytest.fixture
def busy(tmp_path: Path) -> str:
    """A large job waits for two full nodes, and every minute another small one comes, which is more urgent."""
    urgent = [job(f"1{k}", 2, waited=60 * k, PRIORITY="5000", limit="0:05:00") for k in range(5)]
    ended = [f"{k}|ann|main|{NOW - 60 * k}|{NOW - 60 * k}|150|00:05:00|COMPLETED|gres/gpu=2|gres/gpu=2|1|5000" for k in range(5, 30)]
    (tmp_path / "now.txt").write_text(recording([*HELD, job("7", 4, NODES="2"), *urgent], past="\n".join([PAST, *ended])))
    return f"slurm:{tmp_path / 'now.txt'}"


def test_others_come_as_the_latest_did_unless_they_are_left_out(busy: str, capsys: pytest.CaptureFixture[str]) -> None:
    starts = []
    for more in ("", "--newcomers past", "--newcomers none"):
        assert typed(f"forecast 7 --watch {busy} --draws 2 -o json {more}") == 0
        starts.append(json.loads(capsys.readouterr().out)["jobs"][0]["start_p90"])
    assert starts[0] == starts[1] > starts[2] + 30
    assert typed(f"forecast 7 --watch {busy} --draws 1") == 0
    assert "with newcomers as in the past" in capsys.readouterr().out


def test_a_look_with_few_jobs_does_not_say_how_others_come(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "now.txt").write_text(recording([*HELD, job("7", 4)]))
    asked = f"forecast --watch slurm:{tmp_path}/now.txt --draws 1"
    assert typed(asked) == 0
    assert "no new jobs" in capsys.readouterr().out
    assert typed(f"{asked} --newcomers past") == 2
    assert "too few jobs are known" in capsys.readouterr().err


def test_an_array_is_one_submission_and_does_not_hide_those_before_it() -> None:
    alone = [job(str(k), waited=100 + k) for k in range(30)]
    array = [job(f"99_{k}") for k in range(1000)]
    arrivals = watched(read_state(recording([*alone, *array]))).arrivals
    assert len(arrivals) == 1030


# How much of their limits jobs use: those that still run count, too, as jobs that use more than they have so far.

EVENLY = [(k + 0.5) / 200 for k in range(200)]


def test_where_all_have_ended_their_shares_are_the_answer_and_a_few_more_up_to_the_limit() -> None:
    found = shares_of_limits([0.2] * 180, [])
    assert found.count(0.2) == 181
    assert (len(found), max(found)) == (200, 1.0)


def test_where_accounting_is_young_the_long_jobs_still_run_and_are_not_forgotten() -> None:
    """All of them began together, and a third of their limits has passed."""
    ended, running = [share for share in EVENLY if share < 0.34], [0.34 for share in EVENLY if share >= 0.34]
    found = np.array(shares_of_limits(ended, running))
    assert np.quantile(ended, 0.9) < 0.34
    for place in (0.1, 0.5, 0.9):
        assert np.quantile(found, place) == pytest.approx(place, abs=0.02)


def test_jobs_that_began_at_any_time_count_as_far_as_they_have_come() -> None:
    random = np.random.default_rng(0)
    share, age = random.beta(2.0, 3.0, 4000), random.uniform(0.0, 1.2, 4000)
    found = shares_of_limits(share[share <= age].tolist(), age[share > age].tolist())
    assert np.quantile(found, [0.25, 0.5, 0.9]) == pytest.approx(np.quantile(share, [0.25, 0.5, 0.9]), abs=0.04)


def test_where_nothing_has_ended_any_share_up_to_the_limit_is_as_likely() -> None:
    assert np.mean(shares_of_limits([], [])) == pytest.approx(0.525)
    assert shares_of_limits([], [1.5]) != shares_of_limits([], [])
    assert 0.0 < min(shares_of_limits([], [0.0, 1.5])) <= max(shares_of_limits([], [0.0, 1.5])) <= 1.0
