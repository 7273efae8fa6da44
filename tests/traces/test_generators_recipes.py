"""The generators of published systems: their rules on our own numbers; `test_generators_reference` checks theirs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from gantline.core.errors import NotFoundError, UsageError
from gantline.systems.gavel.generator import TEMPLATES, throughput_key
from gantline.traces.generators import generate
from gantline.traces.options import losses_of, parse_options
from gantline.traces.stats import stats
from gantline.traces.trace import Trace


def made_up_speeds() -> dict[str, dict[str, object]]:
    """A table in Gavel's layout: every job type does two steps a second for each GPU."""
    keys = ((template, gpus) for template in TEMPLATES for gpus in (1, 2, 4, 8))
    row: dict[str, object] = {throughput_key(t.name, gpus): {"null": 2.0 * gpus} for t, gpus in keys}
    return {"v100": row}


class TestGavel:
    def test_a_rate_is_another_way_to_say_the_mean_gap(self) -> None:
        assert generate("gavel", jobs=20, jobs_per_hour=4).frame.equals(generate("gavel", jobs=20, mean_gap=900).frame)

    def test_a_steady_start_fills_the_cluster_at_once_and_changes_no_job(self) -> None:
        """Two devices of each of three types: gangs are drawn until each type is covered, then arrivals begin."""
        frame = generate("gavel", seed=4, jobs=40, multi_gpu=True, steady="2:2:2").frame
        early = frame.filter(pl.col("arrival") == 0)["gpus"].to_list()
        filled, wanted = [], [2, 2, 2]
        while wanted:
            filled.append(early[len(filled)])
            wanted[0] -= filled[-1]
            wanted = wanted if wanted[0] > 0 else wanted[1:]
        assert len(early) == len(filled) + 1  # the first arrival is at zero too
        assert frame.drop("arrival").equals(generate("gavel", seed=4, jobs=40, multi_gpu=True).frame.drop("arrival"))

    def test_entities_own_blocks_of_jobs(self) -> None:
        assert generate("gavel", jobs=6, entities=3).frame["user"].to_list() == ["e0", "e0", "e1", "e1", "e2", "e2"]

    def test_first_job_at_zero_then_exponential_gaps_from_the_generator_of_arrivals(self) -> None:
        arrival = generate("gavel", seed=5, jobs=50, mean_gap=600).frame["arrival"].to_list()
        generator = Random(5 + 3)
        expected = [0.0]
        for _ in range(49):
            expected.append(expected[-1] + -math.log(1 - generator.random()) * 600)
        assert arrival == expected

    def test_single_gpu_jobs_still_draw_their_size(self) -> None:
        one, many = (generate("gavel", seed=1, jobs=1, multi_gpu=multi).frame for multi in (False, True))
        assert one["gpus"].to_list() == [1]
        assert one["duration"].equals(many["duration"])

    def test_only_distributable_models_run_on_several_gpus(self) -> None:
        frame = generate("gavel", seed=3, jobs=3000, multi_gpu=True).frame
        spread = set(frame.filter(pl.col("gpus") > 1)["model"])
        assert spread == {"ResNet-18", "ResNet-50", "Transformer", "LM"}
        share = dict(frame["gpus"].value_counts(normalize=True).iter_rows())
        assert share == pytest.approx({1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}, abs=0.03)

    def test_a_fifth_of_the_jobs_runs_longer_than_a_thousand_minutes(self) -> None:
        duration = generate("gavel", seed=0, jobs=5000).frame["duration"]
        assert (duration > 60_000).mean() == pytest.approx(0.2, abs=0.02)
        assert 60 * 10**1.5 <= duration.min() < duration.max() <= 600_000  # type: ignore[operator]

    def test_a_throughput_table_turns_seconds_into_steps(self, tmp_path: Path) -> None:
        path = tmp_path / "speeds.json"
        path.write_text(json.dumps(made_up_speeds()))
        frame = generate("gavel", seed=0, jobs=40, multi_gpu=True, throughputs=str(path)).frame
        assert frame["work"].to_numpy() == pytest.approx((frame["duration"] * frame["gpus"] * 2).to_numpy())

    def test_whole_steps_shorten_the_job_to_match(self) -> None:
        cut = generate("gavel", seed=0, jobs=40, throughputs=made_up_speeds(), whole_steps="yes").frame
        assert (cut["work"] % 1 == 0).all()
        assert (cut["duration"] * 2).to_list() == pytest.approx(cut["work"].to_list())

    def test_priorities_and_slos_draw_on_their_own(self) -> None:
        plain = generate("gavel", seed=2, jobs=2000, slos=True).frame
        slack = ((plain["deadline"] - plain["arrival"]) / plain["duration"]).round(6)
        share = dict(slack.value_counts(normalize=True).iter_rows())
        assert share == pytest.approx({1.2: 0.33, 2.0: 0.34, 10.0: 0.33}, abs=0.03)
        assert plain.drop("deadline").equals(generate("gavel", seed=2, jobs=2000).frame)
        weight = generate("gavel", seed=2, jobs=2000, priorities=True).frame["weight"]
        assert (weight == 5).mean() == pytest.approx(0.2, abs=0.03)

    def test_the_script_makes_static_traces_of_one_to_four_hours(self) -> None:
        frame = generate("gavel-script", seed=0).frame
        assert len(frame) == 60
        assert set(frame["arrival"]) == {0}
        assert set(frame["duration"] / 3600) == {1, 2, 3, 4}

    def test_a_missing_table_is_not_found(self) -> None:
        with pytest.raises(NotFoundError, match="no file"):
            generate("gavel", throughputs="nowhere.json")


class TestBlox:
    def test_gaps_are_whole_seconds_of_at_least_one(self) -> None:
        arrival = generate("blox", seed=1, jobs=500, jobs_per_hour=600).frame["arrival"]
        assert (arrival % 1 == 0).all()
        assert arrival.diff().drop_nulls().min() >= 1  # type: ignore[operator]

    def test_durations_are_drawn_before_arrivals(self) -> None:
        slow, fast = (generate("blox", seed=1, jobs=200, jobs_per_hour=rate).frame for rate in (2, 9))
        assert slow["duration"].equals(fast["duration"])

    def test_a_longer_list_moves_the_arrivals_but_not_the_durations(self) -> None:
        short, long = (generate("blox", seed=1, jobs=200, list_jobs=count).frame for count in (200, 300))
        assert short["duration"].equals(long["duration"])
        assert not short["arrival"].equals(long["arrival"])

    def test_the_list_is_used_again_when_it_runs_out(self) -> None:
        frame = generate("blox", seed=1, jobs=25, list_jobs=10, sizes="1,2,4").frame
        assert frame["duration"][10:20].equals(frame["duration"][:10])
        assert frame["gpus"][:12].to_list() == [1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 1, 2]

    def test_loss_curves_are_drawn_apart_and_jobs_stay_the_same(self) -> None:
        plain, curved = generate("blox", seed=1, jobs=2000).frame, generate("blox", seed=1, jobs=2000, early=0.75).frame
        assert curved.drop("loss").equals(plain)
        counts = {
            int(losses_of(cell, np.array([0.4]))[0] <= 0.5 * 1.001): count for cell, count in curved["loss"].value_counts().iter_rows()
        }
        assert counts[1] / 2000 == pytest.approx(0.75, abs=0.03)

    def test_small_durations_end_at_eight_hours(self) -> None:
        duration = generate("blox", seed=1, jobs=2000, small=True).frame["duration"]
        assert duration.max() <= 60 * 10**2.7  # type: ignore[operator]
        assert duration.mean() == pytest.approx(3 * 3600, rel=0.06)


class TestElasticFlow:
    def test_sizes_lengths_gaps_and_deadlines_follow_the_recipe(self) -> None:
        trace = generate("elasticflow", seed=0, jobs=40_000)
        found = stats(trace)
        assert {int(size.name): size.jobs for size in found.sizes} == pytest.approx({1: 0.83, 2: 0.03, 4: 0.03, 8: 0.1, 16: 0.01}, abs=0.01)
        duration, arrival = trace.frame["duration"], trace.frame["arrival"]
        assert (duration > 60 * 10**2.5).mean() == pytest.approx(0.2, abs=0.01)
        assert duration.median() == pytest.approx(600 * 10 ** (1.5 * 0.5 / 0.8), rel=0.05)
        assert found.mean_gap == pytest.approx(1500, rel=0.03)
        assert found.gap_variation == pytest.approx(1, abs=0.03)
        slack = (trace.frame["deadline"] - arrival) / duration
        assert np.quantile(slack.to_numpy(), (0, 0.5, 1)) == pytest.approx((0.5, 1, 1.5), abs=0.02)

    def test_its_settings_can_be_changed(self) -> None:
        trace = generate("elasticflow", seed=0, jobs=None, length="10d", load=0.8, gpus=128)
        assert stats(trace, gpus=128).offered_load == pytest.approx(0.8, rel=0.25)


class TestHybrid:
    def test_every_job_may_run_on_a_gpu_or_on_a_cpu_node(self) -> None:
        frame = generate("hybrid", seed=0, jobs=4000).frame
        ways = [parse_options(text) for text in frame["options"].to_list()]
        assert {tuple(way.type for way in job) for job in ways} == {("gpu", "cpu")}
        on_gpu, on_cpu = (np.array([job[k].duration for job in ways]) for k in (0, 1))
        assert frame["duration"].to_list() == on_gpu.tolist()
        assert {(job[0].gpus, job[1].gpus, job[1].cpus) for job in ways} == {(1, 0, 32.0)}
        assert on_cpu.min() >= 40.0
        assert on_cpu.max() <= 450.0
        assert np.median(on_cpu / on_gpu) == pytest.approx(7.5, abs=1.0)
        assert (on_cpu < on_gpu).mean() == pytest.approx(0.04, abs=0.03)

    def test_errors_have_the_deviation_asked_for_and_none_means_no_columns(self) -> None:
        frame = generate("hybrid", seed=1, jobs=4000, error=0.2).frame
        for column in ("gpu_err", "cpu_err"):
            assert frame[column].std() == pytest.approx(0.2, rel=0.05)
        assert "gpu_err" not in generate("hybrid", seed=1, jobs=10, error=0).frame.columns

    def test_users_submit_alike_or_by_rank_and_one_can_be_looked_at_alone(self) -> None:
        alike = generate("hybrid", seed=2, jobs=4000).frame["user"].value_counts()
        assert alike["count"].min() > 300
        ranked = generate("hybrid", seed=2, jobs=4000, skew=1)
        counts = dict(ranked.frame["user"].value_counts().iter_rows())
        assert counts["user01"] > 8 * counts["user10"]
        alone = generate("hybrid", seed=2, jobs=4000, skew=1, only="user10").frame
        assert alone.equals(ranked.frame.filter(pl.col("user") == "user10"))


MISTAKES: dict[str, list[tuple[str, object]]] = {
    "gavel": [
        ("throughputs", {"v100": {}}), ("throughputs", 3), ("mean_gap", -1), ("duration", 0), ("multi_gpu", "maybe"), ("jobs", 0),
        ("lam", 900),
    ],
    "blox": [("sizes", "0"), ("jobs_per_hour", 0), ("list_jobs", -1), ("load", 1), ("early", 1.5)],
    "hybrid": [("users", 0), ("error", -1), ("skew", "x"), ("only", "nobody"), ("load", 1)],
}  # fmt: skip


@pytest.mark.parametrize(("name", "field", "value"), [(name, *row) for name, rows in MISTAKES.items() for row in rows])
def test_a_mistake_names_its_setting(name: str, field: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"setting '{field}'"):
        generate(name, **{"jobs": 5, field: value})  # type: ignore[arg-type]


def test_a_table_without_the_device_names_that_setting() -> None:
    with pytest.raises(UsageError, match="setting 'device'"):
        generate("gavel", throughputs={"p100": {}})


@pytest.mark.parametrize("name", ["gavel", "gavel-script", "blox", "elasticflow", "hybrid"])
def test_a_recipe_gives_a_valid_trace_and_the_same_one_again(name: str) -> None:
    trace = generate(name, seed=9, jobs=50)
    assert Trace.from_frame(trace.frame).frame.equals(trace.frame)
    assert generate(name, seed=9, jobs=50) == trace
    assert generate(name, seed=10, jobs=50) != trace
