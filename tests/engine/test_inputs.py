"""What enters from outside is a value: the same whether it is written, read back, or applied to a run."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.engine.states import engine_of
from tests.jobs import job_row as job

from gantline.core.cluster import Node
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.inputs import Action, Input, JobRequest, News, NodeEvent, Report, SetJob, Submit, decode_input, encode_input
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.core.tables import Tables
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.engine.submissions import RejectedError
from gantline.policies.fifo import Fifo
from gantline.policies.placement.rules import find_placement
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

EXAMPLES: list[Input] = [
    Submit(3.0, {"id": "a", "gpus": 2, "user": "ana"}, work=50.0),
    Submit(3.0, {"id": "a", "options": [{"type": "gpu", "gpus": 4}]}),
    Submit(3.0, {"gpus": 2}, ids=("7_0", "7_1")),
    JobRequest(5.0, Action.CANCEL, "a", others=("b", "c")),
    *(JobRequest(5.0, request, "a") for request in Action if request is not Action.RESIZE),
    JobRequest(5.0, Action.RESIZE, "a", 4, 2, 8),
    SetJob(5.0, "a", 3.0, "late", 60.0),
    SetJob(5.0, "a", queue=""),
    NodeEvent(7.0, "node0", "down"),
    NodeEvent(8.0, "new", "join", Node("new", "gpu", 4, cpus=8.0)),
    Report(News.STOPPED, 3, 2, 9.5, 12.25),
    Report(News.STARTED, 3, 2, 9.5, 0.0, (4, 5)),
]


@pytest.mark.parametrize("value", EXAMPLES, ids=lambda value: encode_input(value)["input"])
def test_an_input_survives_json(value: Input) -> None:
    assert repr(decode_input(json.loads(json.dumps(encode_input(value))))) == repr(value)  # with NaN, which equals nothing


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"input": "cancle", "job": "a"}, "no input 'cancle'"),
        ({"input": "cancel"}, "'job' is missing"),
        ({"input": "cancel", "job": "a", "gpu": 3}, "unknown key 'gpu'"),
        ({"input": "cancel", "job": "a", "others": "b"}, "not a list of ids"),
        ({"input": "report", "news": "stoped", "row": 0, "epoch": 1}, "no news 'stoped'"),
    ],
)
def test_a_mistake_is_told(written: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        decode_input(written)


def told(run: Run, name: str) -> tuple[str, float]:
    row = run.jobs.filter(run.jobs["job"] == name).row(0, named=True)
    return row["state"], row["finish"]


def both_clocks(*what: Any, **options: Any) -> Run:
    run, acknowledged = simulate(*what, **options), simulate(*what, executor="acknowledged", **options)
    assert acknowledged.jobs.write_csv() == run.jobs.write_csv()
    return run


def test_a_job_is_submitted_beside_the_trace_and_the_tables_grow() -> None:
    more = [Submit(10.0 + k, {"id": f"more{k}", "gpus": 1, "user": "bo"}, work=20.0) for k in range(40)]
    run = both_clocks([job("a")], "1x4", "fifo", inputs=more)

    assert run.jobs.height == 41
    assert run.jobs["finish"].is_not_nan().all()
    assert told(run, "more0") == ("completed", 30.0)
    assert told(run, "more39")[1] > told(run, "more0")[1]
    assert run.jobs["user"].to_list()[-1] == "bo"


def test_a_cancelled_job_gives_back_what_it_holds() -> None:
    run = both_clocks([job("a", 2), job("b", 2)], "1x2", "fifo", inputs=[JobRequest(30.0, Action.CANCEL, "a")])

    assert told(run, "a")[0] == "cancelled"
    assert told(run, "b") == ("completed", 130.0)
    assert run.jobs["preemptions"].to_list() == [0, 0]


def test_a_job_that_its_loss_ends_has_completed_with_what_it_did() -> None:
    finish = [JobRequest(30.0, Action.FINISH, "a"), JobRequest(40.0, Action.FINISH, "a")]
    run = both_clocks([job("a", 2), job("b", 2)], "1x2", "fifo", inputs=finish)

    assert told(run, "a") == ("completed", 30.0)
    assert told(run, "b") == ("completed", 130.0)
    assert run.jobs["preemptions"].to_list() == [0, 0]
    assert run.jobs["duration"].to_list() == [30.0, 100.0]
    assert run.allocations["reason"].to_list()[0] == "loss"


def test_a_held_job_is_kept_out_until_it_is_released_and_keeps_its_work() -> None:
    requests = [JobRequest(30.0, Action.HOLD, "a"), JobRequest(50.0, Action.RELEASE, "a")]
    run = both_clocks([job("a", 2), job("b", 2, 10.0)], "1x2", "fifo", inputs=requests)

    assert told(run, "b") == ("completed", 40.0)
    assert told(run, "a") == ("completed", 120.0)


def test_a_job_may_be_held_before_it_arrives() -> None:
    requests = [JobRequest(5.0, Action.HOLD, "b"), JobRequest(60.0, Action.RELEASE, "b"), JobRequest(5.0, Action.CANCEL, "c")]
    run = both_clocks([job("a", 1, 30.0), job("b", 1, 10.0, at=20.0), job("c", 1, 10.0, at=21.0)], "1x2", "fifo", inputs=requests)

    assert told(run, "b") == ("completed", 70.0)
    assert told(run, "c")[0] == "cancelled"


def test_a_requeued_job_waits_like_any_other() -> None:
    requests = [JobRequest(30.0, Action.CANCEL, "a"), JobRequest(40.0, Action.REQUEUE, "a")]
    run = both_clocks([job("a", 2), job("b", 2, 50.0, at=10.0)], "1x2", "fifo", inputs=requests)

    assert told(run, "b") == ("completed", 80.0)
    assert told(run, "a") == ("completed", 150.0)  # thirty of a hundred seconds were saved


def test_a_job_that_asks_for_more_gets_it_when_the_policy_says_so() -> None:
    run = both_clocks([job("a"), job("b", 2, 10.0, at=5.0)], "1x2", "srtf", inputs=[JobRequest(1.0, Action.RESIZE, "b", 1)])

    assert told(run, "b") == ("completed", 25.0)  # on one device, beside the other job, half as fast


def test_what_cannot_be_is_refused_with_a_reason_and_nothing_is_queued() -> None:
    engine = engine_of([job("a")], "1x2")
    engine.state.lists.number[RowCount.NEXT] = 1  # the trace's only job has arrived
    before = len(engine.state.tables.ids)
    with pytest.raises(RejectedError, match="asks for more devices than the cluster has") as large:
        engine.apply(Submit(0.0, {"id": "huge", "gpus": 64}))
    with pytest.raises(RejectedError, match="asks for a device type that the cluster does not have") as strange:
        engine.apply(Submit(0.0, {"id": "strange", "options": [{"type": "tpu", "gpus": 1}]}))

    assert (large.value.reason, strange.value.reason) == (Reason.TOO_LARGE, Reason.NO_SUCH_TYPE)
    assert len(engine.state.tables.ids) == before
    with pytest.raises(UsageError, match="there is a job 'a' already"):
        engine.apply(Submit(0.0, {"id": "a"}))
    with pytest.raises(NotFoundError, match="no job 'aa'"):
        engine.apply(JobRequest(0.0, Action.CANCEL, "aa"))


def test_a_finished_job_cannot_be_requeued() -> None:
    engine = engine_of([job("a")], "1x2")
    engine.state.tables.I[Job.PHASE, 0] = int(Phase.COMPLETED)
    with pytest.raises(RefusedError, match="job 'a' is completed"):
        engine.apply(JobRequest(0.0, Action.REQUEUE, "a"))
    assert engine.apply(JobRequest(0.0, Action.CANCEL, "a")) is False


def test_an_imitation_takes_no_inputs() -> None:
    with pytest.raises(RefusedError, match="nothing like inputs"):
        simulate([job("a")], "1x2", "drf", regime="irfsim", inputs=[JobRequest(0.0, Action.CANCEL, "a")])


def test_an_array_is_as_its_jobs_one_by_one() -> None:
    cluster = parse_cluster("a100:2x4,v100:1x2")
    job = {"gpus": 2, "user": "ann", "estimate": 60.0, "priority": 3.0, "metrics": {"gpu_demand": 0.5}}
    states = []
    for together in (True, False):
        engine = Engine(State(Tables.empty(cluster), Regime(), find_placement("first-free")), Fifo())
        engine.apply(Submit(0.0, {"id": "before"}))
        if together:
            engine.apply(Submit(5.0, job, ids=("7_0", "7_1", "7_2")))
        else:
            for name in ("7_0", "7_1", "7_2"):
                engine.apply(Submit(5.0, {"id": name, **job}))
        states.append(engine.state.tables)
    one, other = states
    assert one.ids == other.ids
    for name in ("F", "I"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
    assert [one.options[k] for k in range(len(one.options))] == [other.options[k] for k in range(len(other.options))]
    assert np.array_equal(one.metric("gpu_demand"), other.metric("gpu_demand"), equal_nan=True)


def test_an_array_with_an_id_that_is_taken_does_not_come_in() -> None:
    engine = Engine(State(Tables.empty(parse_cluster("1x4")), Regime(), find_placement("first-free")), Fifo())
    engine.apply(Submit(0.0, {"id": "7_1"}))
    for ids in (("7_0", "7_1"), ("8_0", "8_0")):
        with pytest.raises(UsageError, match="already"):
            engine.inputs.check(Submit(1.0, {"gpus": 1}, ids=ids))


def test_a_submission_does_not_look_at_jobs_that_have_ended() -> None:
    """A live service never stops adding rows: what is written into one that has ended must be of no account."""
    engine = engine_of([job("old")], "1x4")
    t, state = engine.state.tables, engine.state
    engine.apply(JobRequest(0.0, Action.CANCEL, "old"))
    t.I[Job.SMALLEST, 0] = 10**6
    room = len(state.lists.demand)
    engine.apply(Submit(1.0, {"id": "new", "gpus": 1}))
    assert len(state.lists.demand) == room
    engine.apply(Submit(2.0, {"id": "large", "gpus": 4}))
    assert len(state.lists.demand) > 4
