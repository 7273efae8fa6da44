"""The generic generator: what is asked for is what comes out, and only the seed decides the rest."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gantline.core.errors import NotFoundError, UsageError
from gantline.models.links.slowest_link_scaling import Scaling
from gantline.traces.faults import contradictions
from gantline.traces.generators import generate, generator_names, summaries
from gantline.traces.generators.generic import generate_workload, work_per_job
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

BASIC = {"jobs": 400, "jobs_per_hour": 20, "sizes": "1:0.6,2:0.2,8:0.2", "durations": "lognormal(median=20m,sigma=1.5)"}


def columns(**changes: object) -> pl.DataFrame:
    return generate("generic", seed=changes.pop("seed", 7), **(BASIC | changes)).frame  # type: ignore[arg-type]


class TestSeeds:
    def test_the_same_seed_gives_the_same_trace(self) -> None:
        assert generate("generic", seed=3, **BASIC) == generate("generic", seed=3, **BASIC)

    def test_another_seed_gives_another_trace(self) -> None:
        assert generate("generic", seed=3, **BASIC) != generate("generic", seed=4, **BASIC)

    def test_adding_columns_leaves_the_others_alone(self) -> None:
        plain = columns()
        rich = columns(users=9, queues=2, models="a:1,b:1", deadline_share=0.5, elastic_share=0.5, outcomes="failed:1")
        assert rich.select(plain.columns).equals(plain)

    def test_a_longer_trace_begins_with_the_shorter_one(self) -> None:
        assert columns(jobs=900).head(400).equals(columns())

    def test_the_load_moves_arrivals_but_keeps_the_jobs(self) -> None:
        light, heavy = (columns(jobs_per_hour=None, load=load, gpus=32) for load in (0.5, 1.0))
        assert light.drop("arrival").equals(heavy.drop("arrival"))
        assert light["arrival"][-1] == pytest.approx(2 * heavy["arrival"][-1], rel=1e-6)

    def test_a_seed_must_be_a_whole_number(self) -> None:
        with pytest.raises(UsageError, match="seed"):
            generate("generic", seed=-1, **BASIC)


class TestAmount:
    def test_a_number_of_jobs_at_a_rate(self) -> None:
        frame = columns(jobs=4000, jobs_per_hour=20)
        assert len(frame) == 4000
        assert frame["arrival"][-1] == pytest.approx(200 * 3600, rel=0.06)

    def test_a_length_at_a_rate(self) -> None:
        frame = columns(jobs=None, length="10d", jobs_per_hour=10)
        assert frame["arrival"].max() < 10 * 86400  # type: ignore[operator]
        assert len(frame) == pytest.approx(2400, rel=0.08)

    def test_a_number_of_jobs_in_a_length_fills_it_exactly(self) -> None:
        frame = columns(jobs=500, jobs_per_hour=None, length="1d", hours=[0.2] * 8 + [1.5] * 16)
        assert len(frame) == 500
        assert 23 * 3600 < frame["arrival"][-1] < 24 * 3600

    def test_a_load_is_the_work_over_the_gpu_time(self) -> None:
        frame = columns(jobs=3000, jobs_per_hour=None, load=0.75, gpus=48)
        work = (frame["gpus"] * frame["duration"]).sum()
        assert work / (48 * frame["arrival"][-1]) == pytest.approx(0.75, rel=0.01)

    def test_a_load_over_a_length_uses_the_expected_work_of_a_job(self) -> None:
        wanted = WorkloadSettings.read(
            {"length": "30d", "load": 0.6, "gpus": 64, "sizes": "1:1,4:1", "durations": "weibull(scale=1h,shape=0.9)"}
        )
        frame = generate_workload(wanted, seed=5).frame
        assert (frame["gpus"] * frame["duration"]).sum() / (64 * 30 * 86400) == pytest.approx(0.6, rel=0.05)

    def test_the_expected_work_counts_the_longest_allowed_duration(self) -> None:
        shape = {"jobs": 9, "jobs_per_hour": 1, "sizes": 2, "durations": "loguniform(1h-10h:1)"}
        free, cut = (WorkloadSettings.read(shape | extra) for extra in ({}, {"longest": "2h"}))
        assert work_per_job(free) == pytest.approx(2 * 9 * 3600 / np.log(10), rel=1e-3)
        assert work_per_job(cut) < 2 * 7200

    def test_too_short_a_length_is_refused(self) -> None:
        with pytest.raises(UsageError, match="no job arrives"):
            columns(jobs=None, length="1s", jobs_per_hour=0.01)


class TestAmountOnTopOfAPreset:
    """A preset determines the amount of work already; what is given displaces what contradicts it."""

    BY_RATE = WorkloadSettings.read({"jobs": 100, "jobs_per_hour": 10})
    BY_LENGTH = WorkloadSettings.read({"jobs": 100, "length": "1d"})

    @pytest.mark.parametrize(
        ("base", "changes", "left"),
        [
            (BY_RATE, {"jobs": 7}, {"jobs": 7, "jobs_per_hour": 10}),
            (BY_RATE, {"length": 60}, {"length": 60, "jobs_per_hour": 10}),
            (BY_RATE, {"load": 1, "gpus": 4}, {"jobs": 100, "load": 1}),
            (BY_RATE, {"length": 60, "load": 1, "gpus": 4}, {"length": 60, "load": 1}),
            (BY_RATE, {"jobs": 7, "length": 60}, {"jobs": 7, "length": 60}),
            (BY_LENGTH, {"jobs": 7}, {"jobs": 7, "length": 86400}),
            (BY_LENGTH, {"length": 60}, {"jobs": 100, "length": 60}),
            (BY_LENGTH, {"jobs_per_hour": 5}, {"jobs": 100, "jobs_per_hour": 5}),
            (BY_LENGTH, {"length": 60, "jobs_per_hour": 5}, {"length": 60, "jobs_per_hour": 5}),
        ],
    )
    def test_two_of_jobs_length_and_rate_remain(self, base: WorkloadSettings, changes: dict[str, object], left: dict[str, float]) -> None:
        merged = WorkloadSettings.read(changes, base)
        found = {name: getattr(merged, name) for name in ("jobs", "length", "jobs_per_hour", "load")}
        assert {name: value for name, value in found.items() if value is not None} == left


class TestShape:
    def test_sizes_follow_their_weights(self) -> None:
        share = columns(jobs=20_000)["gpus"].value_counts(normalize=True)
        assert dict(share.iter_rows()) == pytest.approx({1: 0.6, 2: 0.2, 8: 0.2}, abs=0.012)

    @pytest.mark.parametrize(
        ("text", "median", "ninety"),
        [
            ("lognormal(median=10m, sigma=1)", 600, 600 * np.exp(1.2816)),
            ("weibull(scale=1h, shape=0.5)", 3600 * np.log(2) ** 2, 3600 * np.log(10) ** 2),
            ("loguniform(100s-10000s:1)", 1000, 6310),
            ("loguniform(100-1000:0.8, 1000-10000:0.2)", 100 * 10**0.625, 3162),
            ("quantiles(0=10s, 0.5=5m, 0.9=1h, 1=2h)", 300, 3600),
            ("45m", 2700, 2700),
        ],
    )
    def test_durations_have_the_quantiles_of_their_distribution(self, text: str, median: float, ninety: float) -> None:
        duration = columns(jobs=40_000, durations=text)["duration"]
        assert duration.quantile(0.5) == pytest.approx(median, rel=0.05)
        assert duration.quantile(0.9) == pytest.approx(ninety, rel=0.06)

    def test_durations_may_depend_on_the_size(self) -> None:
        frame = columns(jobs=9000, durations={"1": "5m", "2-4": "1h", "8-": {"kind": "constant", "seconds": "10h"}})
        assert dict(frame.select("gpus", "duration").unique().iter_rows()) == {1: 300, 2: 3600, 8: 36000}

    def test_durations_stay_within_their_limits(self) -> None:
        duration = columns(shortest="10m", longest="30m")["duration"]
        assert (duration.min(), duration.max()) == (600, 1800)

    @pytest.mark.parametrize(("pattern", "variation"), [("gamma", 3.0), ("weibull", 2.0), ("gamma", 0.4), ("poisson", 1.0)])
    def test_gaps_vary_as_asked(self, pattern: str, variation: float) -> None:
        frame = columns(jobs=60_000, interarrival=pattern, variation=variation)
        gaps = np.diff(frame["arrival"].to_numpy())
        assert gaps.mean() == pytest.approx(180, rel=0.05)
        assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.05)

    def test_hours_and_weekdays_shape_the_week(self) -> None:
        hours = [0.0] * 8 + [1.0] * 4 + [3.0] * 4 + [1.0] * 8
        frame = columns(jobs=30_000, hours=hours, weekdays=[1, 1, 1, 1, 1, 0.5, 0], start_hour=6, start_day=4)
        clock = frame["arrival"].to_numpy() / 3600 + 6 + 4 * 24
        hour = np.bincount((clock % 24).astype(int), minlength=24)
        day = np.bincount((clock // 24 % 7).astype(int), minlength=7)
        assert hour[:8].sum() == 0
        assert hour[12:16].sum() / hour[8:12].sum() == pytest.approx(3, rel=0.06)
        assert day[6] == 0
        assert day[5] / day[1] == pytest.approx(0.5, rel=0.15)


class TestLabels:
    def test_users_follow_zipf_and_stay_with_their_queue(self) -> None:
        frame = columns(jobs=20_000, users=20, user_skew=1, queues=4)
        count = frame["user"].value_counts(sort=True)
        assert count["user"][0] == "user01"
        assert count["count"][0] / count["count"][1] == pytest.approx(2, rel=0.15)
        assert frame.group_by("user").agg(pl.col("queue").n_unique())["queue"].max() == 1

    def test_queues_may_be_named_with_their_shares(self) -> None:
        share = columns(jobs=20_000, queues="prod:0.75,research:0.25")["queue"].value_counts(normalize=True)
        assert dict(share.iter_rows()) == pytest.approx({"prod": 0.75, "research": 0.25}, abs=0.012)

    def test_deadlines_lie_within_the_slack(self) -> None:
        frame = columns(deadline_share=0.4, deadline_slack="1.2-2", jobs=5000)
        due = frame.drop_nulls("deadline")
        slack = (due["deadline"] - due["arrival"]) / due["duration"]
        assert len(due) / len(frame) == pytest.approx(0.4, abs=0.03)
        assert 1.19 < slack.min() < 1.25  # type: ignore[operator]
        assert 1.95 < slack.max() < 2.01  # type: ignore[operator]

    def test_elastic_jobs_have_room_around_their_size(self) -> None:
        frame = columns(elastic_share=0.5, elastic_range="0.5-2", jobs=2000).filter(pl.col("gpus") == 8)
        ranges = set(frame.select("min_gpus", "max_gpus").iter_rows())
        assert ranges == {(8, 8), (4, 16)}

    def test_speeds_become_options_with_the_durations_of_each_type(self) -> None:
        frame = columns(speeds="v100:1,k80:0.25", sensitivity="1", durations="1h", sizes=2)
        assert set(frame["options"]) == {"v100:2=3600|k80:2=14400"}

    def test_every_column_passes_the_checks_of_a_loaded_trace(self) -> None:
        frame = columns(
            users=5,
            queues=2,
            models="bert:1,resnet50:3",
            types="v100:1,a100:1",
            speeds="v100:1,a100:2",
            sensitivity="0.5-1.2",
            priorities="0:0.9,10:0.1",
            outcomes="completed:0.6,failed:0.3,killed:0.1",
            deadline_share=0.5,
            elastic_share=0.5,
            cpus_per_gpu=6,
            memory_per_gpu=48,
        )
        assert Trace.from_frame(frame).frame.equals(frame)


class TestMistakes:
    @pytest.mark.parametrize(
        ("field", "changes"),
        [
            ("lod", {"lod": 1}),
            ("jobs", {"jobs_per_hour": None}),
            ("jobs", {"length": "1d"}),
            ("jobs", {"jobs": "many"}),
            ("jobs", {"jobs": 0}),
            ("load", {"load": 0.5, "gpus": 8}),
            ("gpus", {"jobs_per_hour": None, "load": 0.5}),
            ("sizes", {"sizes": "1:-1,2:2"}),
            ("sizes", {"sizes": "0:1"}),
            ("sizes", {"sizes": "1.5:1"}),
            ("sizes", {"sizes": ""}),
            ("sizes", {"sizes": "1:1,16:1", "gpus": 8}),
            ("durations", {"durations": "lognormal(median=1h)"}),
            ("durations", {"durations": "lognorm(median=1h,sigma=1)"}),
            ("durations", {"durations": "quantiles(0=1s,0.5=5m)"}),
            ("durations", {"durations": "quantiles(0=5m,1=1s)"}),
            ("durations", {"durations": "loguniform(1h:1)"}),
            ("durations", {"durations": "loguniform(2h-1h:1)"}),
            ("durations", {"durations": "1 fortnight"}),
            ("durations", {"durations": {"1": "5m"}}),
            ("durations", {"durations": {"few": "5m"}}),
            ("shortest", {"shortest": 0}),
            ("interarrival", {"interarrival": "possion"}),
            ("variation", {"variation": 2}),
            ("variation", {"interarrival": "gamma", "variation": 0}),
            ("hours", {"hours": "1,2,3"}),
            ("hours", {"hours": [0] * 24}),
            ("start_hour", {"start_hour": 24}),
            ("users", {"users": -1}),
            ("outcomes", {"outcomes": "crashed:1"}),
            ("speeds", {"speeds": "v100:0,k80:1"}),
            ("deadline_share", {"deadline_share": 1.5}),
            ("deadline_slack", {"deadline_slack": "3-2"}),
            ("elastic_range", {"elastic_range": "2-4"}),
        ],
    )
    def test_a_mistake_names_its_setting(self, field: str, changes: dict[str, object]) -> None:
        with pytest.raises(UsageError, match=rf"setting '{field}'"):
            columns(**changes)

    def test_an_unknown_generator_is_not_found(self) -> None:
        with pytest.raises(NotFoundError, match="did you mean 'generic'"):
            generate("generik")

    def test_every_generator_has_a_summary(self) -> None:
        assert set(summaries()) == set(generator_names())


@settings(max_examples=settings().max_examples // 3)
@given(
    seed=st.integers(0, 2**40),
    jobs=st.integers(1, 60),
    sigma=st.floats(0, 3),
    variation=st.floats(0.05, 5),
    hours=st.lists(st.floats(0.01, 5), min_size=24, max_size=24),
)
def test_any_valid_settings_give_a_valid_trace(seed: int, jobs: int, sigma: float, variation: float, hours: list[float]) -> None:
    wanted = {"jobs": jobs, "jobs_per_hour": 5, "durations": {"kind": "lognormal", "median": "1h", "sigma": sigma}}
    more = {"interarrival": "gamma", "variation": variation, "hours": hours, "sizes": "1:3,4:1", "users": 3}
    frame = generate("generic", seed=seed, **wanted, **more).frame
    assert Trace.from_frame(frame).frame.equals(frame)
    assert len(frame) == jobs


# Elastic jobs: curves as promised, the same jobs rigid, settings that are refused.


def test_options_follow_amdahls_law_and_begin_with_the_request() -> None:
    frame = generate("elastic", seed=3, jobs=40, most=8).frame
    for gpus, duration, text in frame.select("gpus", "duration", "options").iter_rows():
        ways = parse_options(text)
        assert (ways[0].gpus, ways[0].duration) == (gpus, duration)
        seconds = {way.gpus: way.duration for way in ways}
        assert sorted(seconds) == list(range(1, 9))
        serial = (2 * seconds[2] - seconds[1]) / seconds[1]
        assert 0.01 - 1e-3 <= serial <= 0.2 + 1e-3
        assert seconds[8] == pytest.approx(seconds[1] * (serial + (1 - serial) / 8), abs=0.01)
        assert 600 <= seconds[1] <= 200_000


@pytest.mark.parametrize("curves", ["amdahl", "steps", "servers"])
def test_rigid_jobs_are_the_same_jobs(curves: str) -> None:
    free, rigid = (generate("elastic", seed=1, jobs=20, curves=curves, rigid=rigid).frame for rigid in (False, True))
    assert rigid.select("job", "arrival", "gpus", "duration").equals(free.select("job", "arrival", "gpus", "duration"))
    assert "max_gpus" in free.columns
    assert not {"options", "min_gpus", "max_gpus"} & set(rigid.columns)


def test_steps_have_a_range_of_batches_that_fits_the_request() -> None:
    for gpus, batch, text in generate("elastic", seed=2, jobs=30, curves="steps").frame.select("gpus", "batch_size", "scaling").iter_rows():
        curve = Scaling.parse(text, batch)
        assert curve.most_batch == 16 * batch
        assert curve.speed(gpus, 1) > 0.0


def test_the_trace_is_sound() -> None:
    assert not contradictions(generate("elastic", seed=0, jobs=50, curves="steps").frame)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"curves": "steep"}, "no curves 'steep'"),
        ({"sizes": "1:1,32:1"}, "between 1 and the 16"),
        ({"parallel": "0.9-1.2"}, "parallel parts"),
        ({"shortest": 100, "longest": 10}, "below the shortest"),
        ({"jobs": 0}, "not above zero"),
        ({"lenght": 3}, "no such setting"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        generate("elastic", **settings)
