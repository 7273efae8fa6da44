"""Devices of one type that differ, on the default engine: every placement rule under every kind of policy, on both clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gantline.core.errors import GantlineError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

RULES = ("packed", "packed-sticky", "pm-first", "pm-first-sticky", "pal", "pal-sticky", "random", "first-free")


def table(folder: Path, slow: dict[int, float] | None = None, name: str = "speeds.csv") -> str:
    """Four nodes of four; all GPUs are alike but those named, which are slow for class A alone."""
    path = folder / name
    factors = [(slow or {}).get(gpu, 1.0) for gpu in range(16)]
    path.write_text("gpu,node,A,B\n" + "".join(f"{gpu},{gpu // 4},{factor},1.0\n" for gpu, factor in enumerate(factors)))
    return str(path)


def workload(count: int = 60, seed: int = 1) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "job": [str(k) for k in range(count)],
            "arrival": np.sort(draw.uniform(0, 4000, count)).round(),
            "gpus": draw.choice([1, 1, 2, 4, 6], count),
            "duration": draw.uniform(100, 900, count).round(),
            "speed_class": draw.choice(["A", "B"], count),
        }
    )


def run(rule: str, speeds: str, policy: str = "srtf", jobs: pl.DataFrame | None = None, **options: Any) -> Run:
    return simulate(workload() if jobs is None else jobs, "4x4", policy, placement=rule, device_speeds=speeds, **options)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "afs", "gandiva"])
@pytest.mark.parametrize("rule", RULES)
def test_with_equal_devices_and_no_penalty_every_rule_gives_the_same_completion_times(tmp_path: Path, rule: str, policy: str) -> None:
    jobs = workload(30)
    plain = simulate(jobs, "4x4", policy).jobs["finish"].to_list()

    assert run(rule, table(tmp_path), policy, jobs).jobs["finish"].to_list() == pytest.approx(plain)


def test_a_gang_goes_at_the_pace_of_its_slowest_device_and_slower_across_nodes(tmp_path: Path) -> None:
    speeds = table(tmp_path, {0: 2.0})
    jobs = pl.DataFrame(
        {"job": ["pair", "wide"], "arrival": [0.0, 1000.0], "gpus": [2, 8], "duration": [100.0, 100.0], "speed_class": ["A", "B"]}
    )

    found = simulate(jobs, "4x4", "fifo", device_speeds=speeds, locality=1.5)

    assert found.jobs["jct"].to_list() == [200.0, 150.0]  # first-free takes the slow GPU 0; the wide gang spans two nodes


@pytest.mark.parametrize("policy", ["srtf", "afs"])
@pytest.mark.parametrize("rule", ["pm-first", "pm-first-sticky"])
def test_a_slow_device_goes_to_a_sensitive_job_only_if_no_other_is_free(tmp_path: Path, rule: str, policy: str) -> None:
    found = run(rule, table(tmp_path, {5: 3.0}), policy)
    kinds = dict(zip(workload()["job"].to_list(), workload()["speed_class"].to_list()))
    spells = [spell for spell in found.allocations.rows(named=True) if spell["end"] > spell["start"]]

    for spell in spells:
        if 5 in spell["devices"] and kinds[spell["job"]] == "A":
            at = spell["start"]
            held = {device for other in spells if other["start"] <= at < other["end"] for device in other["devices"]}
            assert len(held) == 16, spell


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"placement": "pal", "device_speeds": ""}, "looks at the speeds of devices"),
        ({"locality": 1.5, "device_speeds": ""}, "penalty without speeds"),
        ({"locality": 0.5}, "below 1"),
        ({"placement": "pal", "cluster": "4x4/8c", "trace": {"cpus": 1.0}}, "does not count CPUs"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    jobs = workload(3).with_columns(**{name: pl.lit(value) for name, value in change.pop("trace", {}).items()})
    options = {"cluster": "4x4", "policy": "fifo", "device_speeds": table(tmp_path)} | change

    with pytest.raises(GantlineError, match=what):
        simulate(jobs, options.pop("cluster"), options.pop("policy"), **options)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("gpu,varA\n0,1\n1,1\n2,1\n", "says nothing of device 3"),
        ("gpu,varA\n0,1\n1,1\n2,1\n7,1\n", "has no device 7"),
        ("gpu,varA\n0,1\n1,1\n2,1\n2,1\n", "stands in two rows"),
        ("gpu,varA\n0,1\n1,0\n2,1\n3,1\n", "speeds.csv:3.*a factor of 0"),
        ("gpu,varA\n0,1\n1,\n2,1\n3,1\n", "speeds.csv:3.*is empty"),
        ("gpu,node,varA\n0,0,1\n1,0,1\n2,0,1\n3,1,1\n", "device 2 is on node 1"),
        ("gpu,node\n0,0\n1,0\n2,1\n3,1\n", "no column of speeds"),
    ],
)
def test_a_table_that_does_not_fit_the_cluster_is_refused_with_its_line(tmp_path: Path, rows: str, what: str) -> None:
    path = tmp_path / "speeds.csv"
    path.write_text(rows)

    with pytest.raises(GantlineError, match=what):
        simulate(workload(2), "2x2", "fifo", device_speeds=str(path))
