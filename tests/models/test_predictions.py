"""The experiment of `examples/live_gpu` in small, on virtual time: one draw stands for the live run, others predict it."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from gantline import Policy, simulate
from gantline.core.arrays import Floats
from gantline.models.profiles.bundle import Bundle, Profile
from gantline.models.profiles.colocation_fit import TrialLife, fit_colocation
from gantline.models.profiles.profiled_model import ProfiledModel

JOBS = 16


def measured_profiles() -> Bundle:
    """Two kinds, each measured four times with one and two devices: everything scatters by some percent."""
    rng = random.Random(1)

    def scatter() -> float:
        return rng.uniform(0.9, 1.1)

    def life(start: float, rate: float) -> TrialLife:
        speeds = tuple((busy, rate * rng.uniform(0.98, 1.02)) for busy in (0.0, 0.5, 1.0))
        return TrialLife(start * scatter(), 0.5 * scatter(), start * scatter(), speeds)

    sizes = {1: 1.0, 2: 0.8}
    kinds = {"slow": 10.0, "fast": 40.0}
    return Bundle(
        {
            kind: Profile(
                kind, alone={("gpu", size): fit_colocation([life(2.0, rate * part) for _ in range(4)]) for size, part in sizes.items()}
            )
            for kind, rate in kinds.items()
        }
    )


def trace_rows() -> list[dict[str, object]]:
    rng, at, found = random.Random(2), 0.0, []
    for place in range(JOBS):
        found.append({"job": f"{place:02}", "arrival": at, "gpus": rng.choice((1, 1, 2)), "duration": rng.uniform(4.0, 12.0)})
        found[-1]["model"] = ("slow", "fast")[place % 2]
        at += rng.expovariate(1.0)
    return found


@cache
def _jcts(policy: Policy | str, draw: int | None) -> Floats:
    model = ProfiledModel(measured_profiles(), draw=draw)
    run = simulate(trace_rows(), "gpu:1x8", policy, performance=model, executor="measured", min_run=0.0, grace=0.0, turn=0.0)
    return np.array(run.jobs.sort("job")["jct"].to_list())


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_the_mean_is_predicted_within_the_bars(policy: str) -> None:
    """Runs that could have been live, on counted time: the mean of some draws is within 5 % of each, and within 3 % of their mean."""
    draws, runs = 4, 2
    predicted = float(np.mean([_jcts(policy, draw).mean() for draw in range(draws)]))
    errors = [predicted / float(_jcts(policy, 1000 + run).mean()) - 1.0 for run in range(runs)]
    assert abs(float(np.mean(errors))) < 0.03
    assert sorted(map(abs, errors))[int(0.9 * runs)] < 0.05


def test_nine_of_ten_jobs_end_within_their_interval() -> None:
    """Some runs that could have been live, and others that predict them; few of each tell little."""
    low, high = np.quantile([_jcts("fifo", draw) for draw in range(10)], (0.05, 0.95), axis=0)
    inside = [(low <= real) & (real <= high) for real in (_jcts("fifo", 1000 + run) for run in range(3))]
    assert float(np.mean(inside)) >= 0.6
