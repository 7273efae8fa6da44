"""The present queue, and the past, under something else; with a hand-counted answer each."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import NotFoundError, UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.lab.questions import what_if
from gantline.lab.questions.calibration import Forecasting, calibration, check_forecasts, learn
from gantline.lab.questions.forecast import UNSTRETCHED, Forecast, Setup, forecast
from gantline.lab.questions.past import changed, like_it, measured, past_what_if, resampled
from gantline.models.uncertainty import Uncertainty
from gantline.policies.registry import make_policy
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

SURE = Setup(uncertainty=Uncertainty(sigma=0.0), samples=1)
JOBS = [
    {"id": "long", "gpus": 2, "estimate": 1000, "service": 0, "devices": [0, 1]},
    {"id": "short", "gpus": 2, "estimate": 100, "arrival": 0},
]


def instant(jobs=JOBS, cluster="1x2"):
    return decode_snapshot({"now": 0, "cluster": cluster, "jobs": jobs})


def by_metric(answer):
    return {one.metric: one for one in answer.differences}


def test_another_policy_serves_the_short_one_first():
    found = by_metric(what_if(instant(), make_policy("fifo"), make_policy("srtf"), setup=SURE))
    assert (found["jct_mean"].present, found["jct_mean"].other) == (pytest.approx(1050), pytest.approx(600))
    assert (found["wait_mean"].present, found["wait_mean"].other) == (pytest.approx(1000), pytest.approx(0))
    assert found["makespan"].change == pytest.approx(0)


def test_who_pays_for_it_is_told():
    answer = what_if(instant(), make_policy("fifo"), make_policy("srtf"), setup=SURE)
    assert answer.later == ("long",)
    assert "would end later: long" in "\n".join(answer.lines())


def test_more_devices_and_a_lost_node():
    more = by_metric(what_if(instant(), make_policy("fifo"), add="1x2", setup=SURE))
    assert more["jct_mean"].other == pytest.approx(550)
    assert more["makespan"].other == pytest.approx(1000)
    jobs = [{"id": "a", "gpus": 1, "estimate": 100, "devices": [0]}, {"id": "b", "gpus": 1, "estimate": 100, "devices": [1]}]
    less = by_metric(what_if(instant(jobs, "2x1"), make_policy("fifo"), lose=["node1"], setup=SURE))
    assert less["makespan"].present == pytest.approx(100)
    assert less["makespan"].other == pytest.approx(200)


def test_a_queue_that_cannot_end_says_so():
    answer = what_if(instant(), make_policy("fifo"), lose=["node0"], setup=Setup(uncertainty=Uncertainty(0.0), samples=1, horizon=500))
    assert answer.open == 2
    assert "had not ended" in "\n".join(answer.lines())


def test_intervals_are_over_draws_and_pairs_share_their_draw():
    setup = Setup(uncertainty=Uncertainty(sigma=0.5), samples=12)
    answer = what_if(instant(), make_policy("fifo"), make_policy("srtf"), setup=setup)
    one = by_metric(answer)["jct_mean"]
    assert one.low < one.change < one.high
    assert answer.samples == 12
    makespan = by_metric(answer)["makespan"]  # the same work in another order: equal in every draw, because draws are shared
    assert makespan.low == pytest.approx(0)
    assert makespan.high == pytest.approx(0)


def test_an_empty_queue_has_an_answer_too():
    answer = what_if(instant([]), make_policy("fifo"), make_policy("srtf"), setup=SURE)
    assert (answer.jobs, answer.open, answer.later) == (0, 0, ())
    assert answer.lines()


@pytest.mark.parametrize(
    ("more", "error"),
    [({}, UsageError), ({"lose": ["node9"]}, NotFoundError), ({"add": "tpu:1x4"}, UsageError)],
    ids=["nothing", "node", "type"],
)
def test_mistakes_are_named(more, error):
    with pytest.raises(error):
        what_if(instant(), make_policy("fifo"), setup=SURE, **more)


# --- the past -----------------------------------------------------------------------------------------------------------


def history(count=30, **more):
    random = np.random.default_rng(1)
    rows = [
        {"job": f"j{k}", "arrival": 60.0 * k, "gpus": int(random.choice([1, 2, 4])), "duration": float(random.integers(60, 900))}
        for k in range(count)
    ]
    return Trace.from_records(rows)


def test_the_error_of_the_method_is_zero_where_the_past_is_a_simulation():
    trace, cluster = history(), parse_cluster("1x4")
    run = simulate(trace, cluster, "fifo")
    told = {row["job"]: row for row in run.jobs.to_dicts()}
    names = trace.frame["job"].to_list()
    real = Trace(
        trace.frame.with_columns(
            pl.Series("started", [told[name]["first_start"] for name in names]),
            pl.Series("ended", [told[name]["finish"] for name in names]),
        )
    )
    answer = past_what_if(real, cluster, "fifo", "srtf", replicas=3)
    assert [one.relative for one in answer.errors] == pytest.approx([0.0, 0.0, 0.0], abs=1e-9)
    assert {one.metric: one for one in answer.differences}["jct_mean"].change < 0
    assert "error of the method" in "\n".join(answer.lines())
    assert measured(trace) == {}
    assert "not known" in "\n".join(past_what_if(trace, cluster, "fifo", "srtf", replicas=1).lines())


def test_an_interval_about_another_history_holds_the_change_and_names_its_level():
    low, high = like_it(-0.2, np.array([-0.5, -0.4, -0.45, -0.35]))
    assert low <= -0.49
    assert high >= -0.1  # around the change itself, wider than the resampled changes lie apart
    assert like_it(-0.2, np.array([-0.3])) != like_it(-0.2, np.array([-0.3, -0.3]))
    assert like_it(-0.9, np.array([-0.9, 0.9]))[0] == -1.0
    told = "\n".join(past_what_if(history(), parse_cluster("1x4"), "fifo", "srtf", replicas=3).lines())
    assert "90 % interval" in told
    assert "about another history like this one" in told


def test_histories_like_it_keep_jobs_gaps_and_order():
    trace = history()
    again = resampled(trace, np.random.default_rng(3))
    assert len(again.frame) == len(trace.frame)
    assert again.frame["arrival"].is_sorted()
    kinds = set(zip(trace.frame["gpus"], trace.frame["duration"]))
    assert set(zip(again.frame["gpus"], again.frame["duration"])) <= kinds
    gaps = np.diff(again.frame["arrival"].to_numpy())
    assert set(np.round(gaps, 6)) <= {0.0, 60.0}
    assert again.frame["job"].n_unique() == len(again.frame)


def test_nodes_come_and_go():
    cluster = parse_cluster("2x4")
    assert changed(cluster, "1x8", ["node0"]).gpus == 12
    assert changed(cluster, "", []) is cluster
    with pytest.raises(UsageError, match="no node is left"):
        changed(parse_cluster("1x4"), "", ["node0"])
    with pytest.raises(UsageError, match="nothing is different"):
        past_what_if(history(), cluster, "fifo")


# --- forecasts ----------------------------------------------------------------------------------------------------------


def test_a_forecast_of_sure_work_is_the_run():
    one = forecast(instant(), make_policy("fifo"), ["short"], SURE)[0]
    assert (one.start_p50, one.start_p90, one.finish_p50) == (pytest.approx(1000), pytest.approx(1000), pytest.approx(1100))
    with pytest.raises(NotFoundError, match="no job"):
        forecast(instant(), make_policy("fifo"), ["other"], SURE)


def test_forecasts_come_true_as_often_as_they_say():
    """First come, first served, so that only the work is in doubt; it is as noisy as the forecasts think."""
    policy, setup = make_policy("fifo"), Setup(samples=30)
    made, happened = [], {}
    for seed in range(8):
        watching = Forecasting(policy, setup)
        work = np.exp(np.random.default_rng(seed).normal(5, 1, 16))
        trace = Trace.from_records(
            [{"job": f"s{seed}j{k}", "arrival": 0.0, "gpus": 1 + (k % 3), "duration": float(work[k])} for k in range(16)]
        )
        run = simulate(trace, "1x4", policy, record=watching, estimates="noisy:0.3", seed=seed)
        made += watching.made
        happened |= {row["job"]: (row["first_start"], row["finish"]) for row in run.jobs.to_dicts()}
    found = calibration(made, happened)
    assert found.forecasts == 8 * 16
    assert 0.35 < found.start_by_p50 < 0.7
    assert 0.8 < found.start_by_p90 <= 1.0
    assert 0.35 < found.finish_by_p50 < 0.7
    assert 0.8 < found.finish_by_p90 <= 1.0
    assert check_forecasts(trace, "1x4", policy, Setup(samples=2), most=4, estimates="noisy:0.3").forecasts >= 4
    assert calibration([], {}).lines() == ["no forecast could be checked: no job waited"]


def test_nine_of_ten_come_by_the_p90_once_it_was_learned_how_late_forecasts_are():
    """Forecasts that are three times too early, in either direction by luck: the later half is stretched by what the first has shown."""
    random = np.random.default_rng(0)
    said, luck = random.uniform(10, 1000, 400), 3.0 * np.exp(random.normal(0, 0.5, 400))
    made = [Forecast(f"j{k}", 0.0, 0.0, 0.0, said[k], 1.5 * said[k], 1) for k in range(400)]
    happened = {f"j{k}": (0.0, float(said[k] * luck[k])) for k in range(400)}
    stretch = learn(made[:200], happened, 1e9)
    raw, found = calibration(made[200:], happened), calibration([one.stretched(stretch) for one in made[200:]], happened)
    assert raw.finish_by_p90 < 0.2
    assert 0.84 < found.finish_by_p90 < 0.96
    assert 0.4 < found.finish_by_p50 < 0.6
    assert found.start_by_p90 == 1.0
    assert learn(made[:19], happened, 1e9) == UNSTRETCHED, "too few"
    assert learn(made, happened, 14.0) == UNSTRETCHED, "hardly anybody's P90 has passed"
    running = learn(made, {}, 3000.0)  # nobody has come yet: late by what has passed since
    assert running.finish_p90 > stretch.finish_p90


def test_jobs_that_ended_early_teach_nothing_while_others_may_still_come_in_time():
    """Half of the jobs end early, and half exactly at their P90: until then nobody is late."""
    made = [Forecast(f"j{k}", 0.0, 0.0, 0.0, 100.0, 300.0, 1) for k in range(40)]
    happened = {f"j{k}": (0.0, 20.0 if k % 2 else 300.0) for k in range(40)}
    early = {name: times for name, times in happened.items() if times[1] <= 200.0}
    assert learn(made, early, 200.0) == UNSTRETCHED
    stretch = learn(made, happened, 300.0)
    assert (stretch.forecasts, stretch.finish_p90) == (40, 0.0)
