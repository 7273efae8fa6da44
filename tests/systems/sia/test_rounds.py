"""The clock of Sia's simulator, worked out by hand, what follows for jobs of each kind, and tuned jobs under other policies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.systems.sia.worlds import held, job, profiles, run

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import GantlineError, RefusedError, TraceError, UsageError
from gantline.models.goodput.measured import Application, Profiles, StepTimes, Training
from gantline.simulator.simulate import simulate
from gantline.systems.sia.imitation.drive import classes_of, read_jobs
from gantline.systems.sia.imitation.jobs import Fitter
from gantline.systems.sia.imitation.rounds import SiaRounds
from gantline.systems.sia.imitation.schedulers import EpochTimes
from gantline.traces.trace import Trace


def follow(tmp_path: Path, rows: str, jobs: list[dict[str, object]], **more: object):  # type: ignore[no-untyped-def]
    path = tmp_path / "table.csv"
    path.write_text("t_s,name,gpu_type,nodes,gpus\n" + rows)
    return run(jobs, policy="recorded", table=str(path), **more)  # type: ignore[arg-type]


def test_a_recorded_job_ends_in_the_second_worked_out_by_hand(tmp_path: Path) -> None:
    """Decided at 60, restart 30 s, then 400 steps of 2 s."""
    found = follow(tmp_path, "60,a,slow,1,1\n", [job("a")])
    assert found.jobs.select("first_start", "finish", "restarts", "gpu_seconds").row(0) == (60.0, 890.0, 0, 830.0)
    assert held(found) == {"a": [(60.0, 890.0, "slow", 1)]}


def test_another_shape_is_a_restart_and_epochs_end_at_whole_seconds(tmp_path: Path) -> None:
    """45 steps by 180; then 30 s of restart and steps of 1.45 s: 55 of them to the end of the epoch take 80 s, the other epochs 145."""
    found = follow(tmp_path, "60,a,slow,1,1\n180,a,slow,1,2\n", [job("a")])
    assert found.jobs.select("finish", "restarts", "gpu_seconds").row(0) == (210.0 + 80 + 3 * 145, 1, 120.0 + 2 * 545)


def test_a_pause_ends_holding_and_the_resume_is_a_restart(tmp_path: Path) -> None:
    found = follow(tmp_path, "60,a,slow,1,1\n120,a,,0,0\n300,a,slow,1,1\n", [job("a")])
    assert [spell[:2] for spell in held(found)["a"]] == [(60.0, 120.0), (300.0, 330.0 + 770.0)]
    assert found.jobs["restarts"].to_list() == [1]


def test_an_arrival_waits_for_the_end_of_its_round() -> None:
    found = run([job("a", 60.0), job("b", 61.0)])
    assert found.jobs["first_start"].to_list() == [60.0, 120.0]


def test_a_table_that_ends_too_early_leaves_its_jobs_undone(tmp_path: Path) -> None:
    found = follow(tmp_path, "60,a,slow,1,1\n120,a,,0,0\n", [job("a"), job("b")])
    assert found.jobs["state"].to_list() == ["waiting", "waiting"]
    assert found.jobs["gpu_seconds"].to_list() == [60.0, 0.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("60,x,slow,1,1\n", "no job 'x'.*did you mean|no job 'x'"),
        ("60,a,slaw,1,1\n", "no 'slaw'.*slow"),
        ("60,a,slow,1,9\n", "do not lie on 1 nodes"),
        ("60,a,slow,1,two\n", "'two' is no count"),
        ("-5,a,slow,1,1\n", "'-5' is no time"),
        ("60,a,slow,1,4\n60,b,slow,2,8\n", "hold 12 GPUs of 'slow', but there are 8"),
    ],
)
def test_a_table_that_cannot_be_followed_is_told_with_its_line(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(TraceError, match=message) as told:
        follow(tmp_path, rows, [job("a"), job("b")])
    assert "table.csv:" in str(told.value)


def test_a_table_needs_its_columns_and_a_name(tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("t_s,name\n60,a\n")
    with pytest.raises(TraceError, match="no column 'gpu_type'"):
        run([job("a")], policy="recorded", table=str(tmp_path / "bare.csv"))
    with pytest.raises(UsageError, match="no table is given"):
        run([job("a")], policy="recorded")


def test_a_run_followed_by_its_own_table_is_the_same_run(tmp_path: Path) -> None:
    """Pauses, resumes and moves included: whatever Sia decided, a table of it leads to the same seconds."""
    jobs = [
        job(f"job{k}", 11.0 * k, batch_size=256, kind="rigid" if k % 5 == 4 else "adaptive", gpus=3 if k % 5 == 4 else 1) for k in range(14)
    ]
    decided = run(jobs, cluster="slow:1x4,fast:1x4", noise=8.0)
    rows = []
    for name, spells in held(decided).items():
        for k, (begin, end, kind, gpus) in enumerate(spells):
            rows.append(f"{begin:g},{name},{kind},1,{gpus}")
            if k + 1 < len(spells) and spells[k + 1][0] > end:
                rows.append(f"{end:g},{name},,,0")
    assert any(row.endswith(",,,0") for row in rows), "nobody paused, so the story is too easy"
    assert decided.jobs["restarts"].sum() > 14
    followed = follow(tmp_path, "\n".join(rows) + "\n", jobs, cluster="slow:1x4,fast:1x4", noise=8.0)
    columns = ["job", "first_start", "finish", "restarts", "gpu_seconds", "service"]
    assert followed.jobs.select(columns).equals(decided.jobs.select(columns))


# --- Sia ------------------------------------------------------------------------------------------------------------------
def test_a_job_starts_on_one_gpu_of_the_first_type_and_at_most_doubles() -> None:
    found = run([job("a")], noise=4.0)
    widths = [spell[3] for spell in held(found)["a"]]
    assert held(found)["a"][0][2:] == ("slow", 1)
    assert all(after <= 2 * max(widths[: k + 1]) for k, after in enumerate(widths[1:]))
    assert max(widths) > 2


def test_rigid_jobs_have_their_gpus_or_none_and_go_where_they_are_fast() -> None:
    found = run([job("r", kind="rigid", gpus=6, batch_size=96)], cluster="slow:2x4,fast:1x8")
    assert {spell[2:] for spell in held(found)["r"]} == {("fast", 6)}
    assert found.jobs["restarts"].to_list() == [0]


def test_ncf_has_the_batch_that_the_artifact_gives_it_unless_jobs_are_tuned() -> None:
    net = profiles()["net"]
    named = Profiles({"ncf": Application("ncf", net.training, {"slow": net.on("slow")})}, "one application")
    trace = Trace.from_records([job("n", app="ncf", kind="rigid", batch_size=64)])
    batches = [
        read_jobs(trace, named, classes_of(parse_cluster("slow:1x4")), Fitter("artifact"), 30.0, tuned=tuned)[0].fixed_batch
        for tuned in (False, True)
    ]
    assert batches == [32768.0, 64.0]


def test_strong_scaling_jobs_keep_their_batch_and_stay_within_what_they_asked_for() -> None:
    found = run([job("s", kind="strong-scaling", gpus=2, batch_size=64)], noise=8.0)
    assert max(spell[3] for spell in held(found)["s"]) == 2


def test_hybrid_jobs_have_whole_replicas() -> None:
    found = run([job("h", app="pipe", kind="hybrid")])
    stages = {"fast": 2, "slow": 4}
    assert found.jobs["state"].to_list() == ["completed"]
    assert all(spell[3] % stages[spell[2]] == 0 for spell in held(found)["h"])


def test_stages_may_be_given_in_the_trace() -> None:
    found = run([job("h", app="pipe", kind="hybrid", stages="fast:4")], cluster="fast:1x8")
    assert all(spell[3] % 4 == 0 for spell in held(found)["h"])


def test_adaptive_jobs_that_ask_for_more_than_there_is_get_less() -> None:
    found = run([job("a", gpus=64, batch_size=256)], cluster="slow:1x4", noise=8.0)
    assert found.jobs["state"].to_list() == ["completed"]
    assert max(spell[3] for spell in held(found)["a"]) == 4


def test_reserved_jobs_have_what_is_reserved_from_their_arrival_on() -> None:
    jobs = [job(f"job{k}", batch_size=256) for k in range(6)] + [job("vip", 61.0, reserved="fast:8", batch_size=256)]
    found = run(jobs, noise=8.0)
    assert [spell[2:] for spell in held(found)["vip"]] == [("fast", 8)]
    assert held(found)["vip"][0][0] == 120.0


def test_a_guaranteed_type_is_the_only_one() -> None:
    found = run([job("a", type="fast", batch_size=256), job("b", batch_size=256)], noise=8.0)
    assert {spell[2] for spell in held(found)["a"]} == {"fast"}


def test_nodes_of_six_and_one_type_in_two_sizes_are_used_whole() -> None:
    found = run([job(f"job{k}", batch_size=256) for k in range(5)], cluster="odd:2x6,fast:1x8,fast:1x4", noise=8.0)
    assert found.jobs["state"].to_list() == ["completed"] * 5


def test_gavel_gives_every_job_the_gpus_of_the_trace() -> None:
    jobs = [job(f"job{k}", gpus=4, batch_size=128) for k in range(6)]
    found = run(jobs, cluster="slow:1x4,fast:1x4", policy="gavel.max_sum_throughput_perf")
    assert found.jobs["state"].to_list() == ["completed"] * 6
    assert {spell[3] for spells in held(found).values() for spell in spells} == {4}
    assert found.jobs["first_start"].to_list().count(60.0) == 2, "nothing idles while somebody waits"


def test_pollux_gives_no_job_more_gpus_than_the_smallest_type_has() -> None:
    alone = run([job("a")], cluster="slow:4x4,fast:1x4", noise=8.0, policy="pollux", size=20, generations=10)
    assert max(gpus for _, _, _, gpus in held(alone)["a"]) == 4
    wide = run([job("a")], cluster="slow:4x4", noise=8.0, policy="pollux", size=20, generations=10)
    assert max(gpus for _, _, _, gpus in held(wide)["a"]) > 4


def test_pollux_knows_no_types_but_its_answers_never_mix_them() -> None:
    found = run([job(f"job{k}", 20.0 * k) for k in range(5)], noise=8.0, policy="pollux", size=20, generations=10)
    assert found.jobs["state"].to_list() == ["completed"] * 5
    assert {spell[2] for spells in held(found).values() for spell in spells} <= {"slow", "fast"}
    again = run([job(f"job{k}", 20.0 * k) for k in range(5)], noise=8.0, policy="pollux", size=20, generations=10)
    assert found.summary["log_hash"] == again.summary["log_hash"]


# --- what it refuses ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rows", "cluster", "message"),
    [
        ([job("a", app="")], "slow:1x4", "does not say which application"),
        ([job("a", app="nut")], "slow:1x4", "no profile of 'nut'.*net"),
        ([job("a")], "tpu:1x4", "no profile on tpu"),
        ([job("a", type="fast")], "slow:1x4", "fast"),
        ([job("a", kind="rigid", gpus=12)], "slow:2x4", "12 GPUs"),
        ([job("a", app="pipe", kind="hybrid", stages="slow:16")], "slow:2x4", "needs 16 GPUs"),
        ([job("a", reserved="slow:32")], "slow:2x4", "reserves 32 GPUs"),
        ([job("a", kind="elastic")], "slow:2x4", "kind 'elastic' is unknown"),
        ([job("a", reserved="slow")], "slow:2x4", "'slow' is no reservation"),
        ([job("a", kind="hybrid", stages="slow")], "slow:2x4", "no number of stages"),
    ],
)
def test_jobs_that_cannot_run_are_refused_by_name(rows: list[dict[str, object]], cluster: str, message: str) -> None:
    with pytest.raises(GantlineError, match=message):
        run(rows, cluster=cluster)  # type: ignore[arg-type]


def test_what_the_original_has_nothing_like_is_refused() -> None:
    with pytest.raises(UsageError, match="needs measured profiles"):
        simulate([job("a")], "slow:1x4", "sia", regime="sia")
    with pytest.raises(RefusedError, match="does not follow recorded"):
        simulate([job("a")], "slow:1x4", "recorded")


def test_a_job_whose_model_finds_no_batch_still_runs() -> None:
    """From 10 to 12 samples per GPU: a batch of 13 in two steps has 7 each, so none is valid."""
    rows = {(1,): np.array([[10.0, 1.0, 0.001], [12.0, 1.1, 0.001]])}
    course = Training(*(np.array(each) for each in ([13.0, 14.0], [[50.0]] * 2, [[50.0]] * 2, [[1.0]] * 2, [[1.0]] * 2)))
    odd = Profiles({"net": Application("net", course, {"slow": StepTimes(rows)})}, "odd")
    found = simulate([job("a")], "slow:1x1", "sia", regime="sia", profiles=odd)
    assert found.jobs["state"].to_list() == ["completed"]


def test_a_run_in_which_nobody_gets_anything_is_given_up_with_a_word() -> None:
    jobs = [job("a", reserved="slow:4"), job("b", 1.0, kind="rigid", gpus=4, batch_size=64)]

    class Nobody:
        def decide(self, now: float, jobs: object, held: list[object]) -> list[None]:
            return [None] * len(held)

        def next_change(self, now: float) -> float:
            return now

    classes = classes_of(parse_cluster("slow:1x4"))
    rounds = SiaRounds(read_jobs(Trace.from_records(jobs), profiles(), classes, Fitter(), 30.0), classes, Nobody())  # type: ignore[arg-type]
    rounds.run()
    assert rounds.stalled


# Themis and Shockwave on tuned jobs in the clock of Sia's simulator.

POLICIES = ("gavel.finish_time_fairness", "shockwave")


@pytest.mark.parametrize("policy", POLICIES)
def test_equal_jobs_take_turns_and_end_together(policy: str) -> None:
    jobs = [job(name, gpus=4, batch_size=128) for name in ("a", "b", "c")]
    found = run(jobs, cluster="slow:1x4", policy=policy)
    spells = held(found)
    assert {gpus for each in spells.values() for *_, gpus in each} == {4}
    ends = sorted(found.jobs["finish"].to_list())
    alone = run(jobs[:1], cluster="slow:1x4", policy=policy).jobs["finish"][0]
    assert min(len(each) for each in spells.values()) > 1
    assert ends[0] > 1.2 * alone  # nobody is served to the end while the others wait
    assert 2.5 * alone < ends[-1] < 6.5 * alone  # turns of a minute cost half a minute each


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_waits_beside_gpus_that_it_could_use(policy: str) -> None:
    jobs = [job("wide", gpus=4, batch_size=128), *(job(f"slim{k}", gpus=1, batch_size=32) for k in range(4))]
    found = run(jobs, cluster="slow:2x4", policy=policy)
    assert found.jobs["first_start"].to_list() == [60.0] * 5
    assert found.jobs["restarts"].to_list() == [0] * 5


def test_what_is_left_is_counted_in_seconds_on_its_own_gpus() -> None:
    classes = classes_of(parse_cluster("slow:2x4"))
    (one,) = read_jobs(Trace.from_records([job("a", gpus=1, batch_size=32)]), profiles(), classes, Fitter("artifact"), 30.0, tuned=True)
    times = EpochTimes(classes)
    assert times.of(one).tolist() == pytest.approx([200.0] * 4)  # a hundred steps of two seconds each
    one.epoch, one.progress = 1, 150.0
    assert times.left(one) == pytest.approx(500.0)


def test_several_types_are_refused() -> None:
    with pytest.raises(RefusedError, match="know one kind of nodes"):
        run([job("a")], policy="shockwave")
