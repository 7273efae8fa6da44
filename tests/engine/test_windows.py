"""Windows: devices that are reserved in advance are free when the window begins, whatever the policy wants."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.assigning import watched

from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UsageError
from gantline.core.inputs import Action, JobRequest, NodeEvent, Reserve, SetJob, Submit, Unreserve, decode_input, encode_input
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.core.windows import AdvanceWindow, parse_windows
from gantline.policies.fifo import Fifo
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

POLICIES = ("fifo", "srtf", "las", "afs", "equal-share", "gandiva", "themis")  # orders, plans that assign, plans that share


def job(name: str, gpus: int = 4, duration: float = 100.0, arrival: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": gpus, "duration": duration, **more}


def spans(run: Run, node: int) -> list[tuple[str, float, float]]:
    """Who held devices of a node, from when to when."""
    return [(one["job"], one["start"], one["end"]) for one in run.allocations.iter_rows(named=True) if node in one["nodes"]]


def inside(run: Run, node: int, start: float, end: float) -> list[str]:
    return [name for name, begin, stop in spans(run, node) if begin < end and start < stop]


QUEUE = [job("long", duration=900.0), job("short", duration=80.0), job("next", duration=700.0), job("last", duration=60.0, arrival=130.0)]


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
def test_only_what_will_be_over_starts_on_reserved_nodes(executor: str) -> None:
    settings = {"backfill": "skip"}
    run = simulate(QUEUE, "2x4", "fifo", settings=settings, reserve="on=node1,from=200,for=600", executor=executor)
    assert spans(run, 0) == [("long", 0.0, 900.0)]
    assert spans(run, 1) == [("short", 0.0, 80.0), ("last", 130.0, 190.0), ("next", 800.0, 1500.0)]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_window_binds_under_every_policy_and_on_both_clocks(policy: str) -> None:
    runs = [simulate(QUEUE, "2x4", policy, reserve="on=node1,from=200,for=600", executor=one) for one in ("instant", "acknowledged")]
    for run in runs:
        assert inside(run, 1, 200.0, 800.0) == []
        assert run.summary["completed"] == len(QUEUE)
        assert run.summary["incidents"] == 0
    assert runs[0].summary["log_hash"] == runs[1].summary["log_hash"]


def test_what_still_runs_when_it_begins_is_stopped_and_saved_and_goes_on_elsewhere() -> None:
    reserve = Reserve(50.0, AdvanceWindow(100.0, 300.0, places=("node0",)))
    run = simulate([job("a", duration=400.0)], "2x4", "fifo", inputs=[reserve])
    assert run.allocations.select("start", "end", "reason").rows() == [(0.0, 100.0, "window"), (100.0, 400.0, "finished")]
    assert run.summary["preemptions"] == 0
    assert run.summary["work_lost"] == 0.0


@pytest.mark.parametrize("policy", ["fifo", "srtf", "afs"])
def test_jobs_of_its_queue_and_its_users_use_the_window(policy: str) -> None:
    jobs = [
        job("other", duration=500.0, arrival=5.0, queue="dev"),
        job("more", duration=500.0, arrival=6.0, queue="dev"),
        job("theirs", duration=500.0, arrival=10.0, queue="prod/nlp"),
        job("ann's", duration=500.0, arrival=20.0, user="ann"),
    ]
    run = simulate(jobs, "3x4", policy, reserve="nodes=2,from=0,for=450,queue=prod,user=ann")
    assert set(inside(run, 1, 0.0, 450.0) + inside(run, 2, 0.0, 450.0)) == {"theirs", "ann's"}
    assert [name for name, *_ in spans(run, 0)][:1] == ["other"]


def test_a_strict_order_is_not_passed_on_reserved_nodes() -> None:
    jobs = [job("runs", duration=300.0), job("long", duration=900.0, arrival=1.0), job("short", duration=50.0, arrival=2.0)]
    run = simulate(jobs, "2x4", "fifo", reserve="on=node1,from=200,for=100")
    first = {name: begin for name, begin, _ in reversed(spans(run, 0) + spans(run, 1))}
    assert first["short"] >= first["long"] == 300.0


def test_the_end_and_a_cancelled_window_give_the_devices_back() -> None:
    reserve = Reserve(0.0, AdvanceWindow(10.0, 5000.0, "maint", places=("node1",)))
    jobs = [job("a", duration=400.0), job("b", duration=400.0)]
    kept = simulate(jobs, "2x4", "fifo", inputs=[reserve])
    given_up = simulate(jobs, "2x4", "fifo", inputs=[reserve, Unreserve(100.0, "maint")])
    assert spans(kept, 1) == []
    assert spans(given_up, 1) == [("b", 100.0, 500.0)]


def test_a_job_of_unknown_length_does_not_start_there_until_its_length_is_known() -> None:
    reserve = Reserve(0.0, AdvanceWindow(1000.0, 2000.0, places=("node0",)))
    inputs = [
        reserve,
        Submit(10.0, {"id": "blind", "gpus": 4}),
        SetJob(40.0, "blind", estimate=100.0),
        JobRequest(60.0, Action.CANCEL, "blind"),
    ]
    run = simulate([job("tiny", 1, 1.0)], "1x4", "fifo", inputs=inputs, until=100.0)
    assert [begin for name, begin, _ in spans(run, 0) if name == "blind"] == [40.0]


def test_what_an_operator_cordoned_stays_so_after_the_window() -> None:
    reserve = Reserve(0.0, AdvanceWindow(10.0, 100.0, places=("node0",)))
    changes = [reserve, NodeEvent(20.0, "node0:0", "drain"), NodeEvent(30.0, "node0:1", "up")]
    run = simulate([job("a", 3, 10.0, 50.0), job("b", 4, 10.0, 50.0)], "1x4", "srtf", inputs=changes, until=400.0)
    assert spans(run, 0) == [("a", 100.0, 110.0)]


def test_rounds_see_a_window_at_the_next_boundary() -> None:
    run = simulate(QUEUE, "2x4", "las", reserve="on=node1,from=200,for=590", round=60.0)
    assert inside(run, 1, 240.0, 780.0) == []


def test_nodes_that_are_counted_are_those_with_least_in_the_way() -> None:
    seen = {}

    watch = watched(Fifo, lambda snapshot: seen.update({window.name: window.places for window in snapshot.windows}))
    jobs = [job("a", duration=900.0), job("b", duration=100.0), job("c", 2, 900.0), job("late", 1, 10.0, 60.0)]
    windows = [Reserve(50.0, AdvanceWindow(200.0, 300.0, nodes=1)), Reserve(51.0, AdvanceWindow(200.0, 300.0, gpus=3))]
    simulate(jobs, "3x4", watch, inputs=windows)
    assert seen == {"window-1": ("node1",), "window-2": ("node2:1", "node2:2", "node2:3")}


@pytest.mark.parametrize(
    ("window", "error", "told"),
    [
        ({"nodes": 3}, RefusedError, "3 nodes are asked for, and 2 are up"),
        ({"places": ("node7",)}, NotFoundError, "no node 'node7'"),
        ({"places": ("node0:9",)}, NotFoundError, "no device 'node0:9'"),
        ({"places": ("node0",), "name": "first"}, RefusedError, "'first' already"),
        ({"places": ("node1:2",)}, RefusedError, "window 'first' has some of these devices"),
        ({"places": ("node0",), "start": 1.0, "end": 5.0}, RefusedError, "over already"),
    ],
)
def test_what_cannot_be_reserved_is_refused(window: dict[str, Any], error: type[GantlineError], told: str) -> None:
    first = Reserve(0.0, AdvanceWindow(50.0, 300.0, "first", places=("node1",)))
    second = Reserve(10.0, AdvanceWindow(**{"start": 100.0, "end": 200.0, **window}))
    inputs = [first, second] if told.startswith(("'first'", "window")) else [second]
    with pytest.raises(error, match=told):
        simulate([job("a")], "2x4", "fifo", inputs=inputs)


@pytest.mark.parametrize(
    "text",
    [
        "nodes=2",
        "from=1h,for=2h",
        "nodes=x,for=1h",
        "nodes=1,gpus=2,for=1h",
        "nodes=1,for=0",
        "nodes=1,for=1h,who=me",
        "nodes=1,for=1h,for=2h",
    ],
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        simulate([job("a")], "2x4", "fifo", reserve=text)


def test_windows_are_read_as_people_write_them() -> None:
    first, second = parse_windows("nodes=2,from=1h,for=4h,name=maint; on=node0+node1:3,for=30m,queue=prod,user=ann+bo")
    assert first == AdvanceWindow(3600.0, 18000.0, "maint", nodes=2)
    assert second == AdvanceWindow(0.0, 1800.0, places=("node0", "node1:3"), queues=("prod",), users=("ann", "bo"))


def test_inputs_and_snapshots_carry_windows() -> None:
    window = AdvanceWindow(100.0, 200.0, "w", places=("node1",), users=("ann",), queues=("prod",))
    for value in (Reserve(3.0, window), Reserve(3.0, AdvanceWindow(1.0, 2.0, gpus=2)), Unreserve(4.0, "w")):
        assert decode_input(encode_input(value)) == value
    written = []
    inputs = [Reserve(0.0, window), Submit(5.0, {"id": "blind"})]
    simulate([job("a")], "2x4", watched(Fifo, lambda snapshot: written.append(encode_snapshot(snapshot))), inputs=inputs, until=20.0)
    again = encode_snapshot(decode_snapshot(written[-1]))
    assert again == written[-1]
    assert (again["windows"][0]["name"], again["kept_free"], again["unestimated"]) == ("w", [4, 5, 6, 7], ["blind"])


def test_who_is_done_when_a_window_begins_has_finished() -> None:
    """Ends come before stops: it is neither stopped nor charged again, and nothing starts there at that instant."""
    run = simulate([job("a", 1), job("b", 1, 1.0, arrival=1.0)], "1x1", "fifo", reserve="on=node0,from=100,for=50")
    assert run.allocations.select("job", "start", "end", "reason").rows() == [
        ("a", 0.0, 100.0, "finished"),
        ("b", 150.0, 151.0, "finished"),
    ]
    assert run.summary["incidents"] == 0


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
@pytest.mark.parametrize(("regime", "end"), [("default", 10.0), ("blox", 100.0)])
def test_who_ends_within_a_round_is_not_stopped_at_its_end(regime: str, end: float, executor: str) -> None:
    run = simulate([job("a", 1, 10.0)], "1x1", "fifo", round=100.0, regime=regime, reserve="on=node0,from=100,for=50", executor=executor)
    assert run.allocations.select("start", "end", "reason").rows() == [(0.0, end, "finished")]
    assert run.jobs["gpu_seconds"].to_list() == [end]


def test_an_estimate_that_has_run_out_does_not_start_again_as_the_window_begins() -> None:
    """What is left of it counts as nothing, so that it would be over at once; the window has begun."""
    jobs = [job("a", 1, 200.0, time_limit=100.0), job("b", 1, 1.0, arrival=100.0)]  # with b the policy is asked at that instant again
    run = simulate(jobs, "1x1", "fifo", reserve="on=node0,from=100,for=50", estimates="limit")
    assert spans(run, 0) == [("a", 0.0, 100.0), ("a", 150.0, 250.0), ("b", 250.0, 251.0)]


@pytest.mark.parametrize(("begins", "finish"), [(60.0, 60.0), (59.0, 129.0)])
def test_a_first_start_costs_what_starts_cost_before_a_window(begins: float, finish: float) -> None:
    run = simulate([job("a", 1, 50.0)], "1x1", "fifo", costs="start=10,resume=40", reserve=f"on=node0,from={begins},for=10")
    assert run.jobs["finish"].to_list() == [finish]


@pytest.mark.parametrize(("begins", "finish"), [(160.0, 160.0), (159.0, 290.0)])
def test_who_was_stopped_by_a_window_pays_for_its_resume_before_the_next(begins: float, finish: float) -> None:
    windows = [Reserve(1.0, AdvanceWindow(60.0, 70.0, "first", places=("node0",)))]
    windows += [Reserve(61.0, AdvanceWindow(begins, 200.0, "second", places=("node0",)))]
    run = simulate([job("a", 1)], "1x1", "fifo", costs="start=10,resume=40", inputs=windows)
    assert run.jobs["finish"].to_list() == [finish]


def test_windows_that_touch_leave_no_instant_between_them() -> None:
    jobs = [
        job("a", 1, 10.0),
        job("b", 1, 1.0, arrival=1.0),
        job("c", 1, 1.0, arrival=1.0, queue="prod"),
        job("d", 1, 2.0, arrival=1.0, queue="prod"),
    ]
    run = simulate(jobs, "1x1", "fifo", reserve="on=node0,from=10,for=1,queue=prod;on=node0,from=11,for=1")
    assert spans(run, 0) == [("a", 0.0, 10.0), ("c", 10.0, 11.0), ("b", 12.0, 13.0), ("d", 13.0, 15.0)]


def test_a_node_is_reserved_again_from_the_instant_at_which_a_window_ends() -> None:
    simulate([job("a", 1, 5.0)], "1x1", "fifo", reserve="nodes=1,from=10,for=1;nodes=1,from=11,for=1")
    with pytest.raises(RefusedError):
        simulate([job("a", 1, 5.0)], "1x1", "fifo", reserve="nodes=1,from=10,for=2;nodes=1,from=11,for=1")
