"""`--regime pollux` ends every job of Tiresias and Optimus in the second that was published, and Pollux on the published average."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.jobs import by_job
from tests.simulator.references import one_in, reference

from gantline.models.goodput.measured import Profiles
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.pollux.traces import PolluxSettings, draw, read, read_rows
from gantline.traces.files.profiles import read_profiles

FOLDERS = {"0.5": "workloads-0.5", "1.0": "workloads", "1.5": "workloads-1.5", "2.0": "workloads-2.0"}
JOBS = {"workloads-0.5": 80, "workloads": 160, "workloads-1.5": 240, "workloads-2.0": 320, "workloads-realistic": 160}


@cache
def profiles(path: Path) -> Profiles:
    return read_profiles(path)


def replay(policy: str, load: str, number: int, **settings: Any) -> tuple[Run, dict[str, float]]:
    """A run, and the published completion times of its jobs."""
    told = json.loads((reference("pollux") / f"published_results-jobload/{policy}-{load}.json").read_text())["jcts"]
    published = next(jobs for name, jobs in told.items() if Path(name).stem == f"workload-{number}")
    trace = read(reference("pollux") / FOLDERS[load] / f"workload-{number}.csv")
    run = simulate(trace, "aws:16x4", policy, settings=settings, regime="pollux", profiles=profiles(reference("sia/profiles")))
    return run, published


@pytest.mark.parametrize("policy", ["tiresias", "optimus"])
@pytest.mark.parametrize(("load", "number"), one_in(8, [(load, number) for load in FOLDERS for number in range(1, 9)]))
def test_every_job_ends_in_its_published_second(policy: str, load: str, number: int) -> None:
    run, published = replay(policy, load, number)
    assert by_job(run, "jct") == published


@pytest.mark.long
def test_pollux_comes_close_to_the_published_average_with_a_quarter_of_the_generations() -> None:
    run, published = replay("pollux", "0.5", 5, generations=25)
    found = by_job(run, "jct")
    assert run.summary["average_jct"] == pytest.approx(np.mean(list(published.values())), rel=0.06)
    small = [name for name in found if name.startswith("ncf")]
    assert sum(found[name] == published[name] for name in small) >= 0.95 * len(small)
    assert 3.0 < run.summary["restarts"] / len(found) < 5.5
    assert run.summary["belief_error_seen"] < run.summary["belief_error_elsewhere"] < 0.5


def test_the_generator_gives_all_forty_published_workloads() -> None:
    rows, columns = read_rows(reference("pollux/philly_jobs.csv.gz")), ["job", "arrival", "app", "gpus", "batch_size"]
    for folder, jobs in JOBS.items():
        for number in range(1, 9):
            made = draw(number, PolluxSettings(jobs=jobs, realistic=folder.endswith("realistic")), rows).frame
            published = read(reference("pollux") / folder / f"workload-{number}.csv").frame
            assert made.select(columns).rows() == published.select(columns).rows(), (folder, number)
