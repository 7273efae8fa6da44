"""The default plan against every plan there is: none that does the work emits less."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.grids import hourly

from gantline.simulator.simulate import simulate
from gantline.systems.carbonscaler.policies import ServerProfile, cleanest, greedy


def _emitted(profile: ServerProfile, work: float, plan: Any, carbon: Any, seconds: Any, lasts: Any) -> float:
    """Until the work is done; infinity: it never is."""
    grams = 0.0
    for size, level, works, long in zip(plan, carbon, seconds, lasts):
        power, speed = (dict(zip(profile.servers, column)).get(size, 0.0) for column in (profile.power, profile.throughput))
        if 0.0 < work <= speed * works * (1 + 1e-12):
            return float(grams + power * level * (long - works + work / speed))
        work, grams = work - speed * works, grams + power * level * long
    return np.inf


def test_no_plan_that_does_the_work_emits_less() -> None:
    """Over profiles of every shape, flat and changing series, slots that are cut, and servers that others hold."""
    dearer = 0
    for seed in range(50):
        draw = np.random.default_rng(seed)
        sizes, slots, least = int(draw.integers(1, 4)), int(draw.integers(1, 6)), int(draw.integers(1, 3))
        speeds = np.cumsum(draw.uniform(0.2, 2.0, sizes)).tolist()
        profile = ServerProfile(list(range(least, least + sizes)), speeds, np.cumsum(draw.uniform(0.5, 2.0, sizes)).tolist())
        carbon = draw.integers(1, 4, slots) * 10.0 if seed % 3 else draw.uniform(0.0, 50.0, slots)
        room, lasts = draw.integers(0, least + sizes + 2, slots), np.array([draw.uniform(10.0, 100.0), *([100.0] * (slots - 1))])
        seconds = np.maximum(lasts - 5.0 * (seed % 2), 0.0)
        every = [plan for plan in product([0, *profile.servers], repeat=slots) if all(one <= most for one, most in zip(plan, room))]
        full = max(sum(dict(zip(profile.servers, speeds)).get(n, 0.0) * one for n, one in zip(plan, seconds)) for plan in every)
        work = float(draw.uniform(0.05, 1.0)) * full
        if work == 0.0:
            continue

        found, papers = cleanest(profile, work, carbon, seconds, room, lasts), greedy(profile, work, carbon, seconds, room)

        assert (found is None) == (papers is None)
        if found is None or papers is None:
            continue
        best = min(_emitted(profile, work, plan, carbon, seconds, lasts) for plan in every)
        assert tuple(found) in every
        assert _emitted(profile, work, found, carbon, seconds, lasts) == pytest.approx(best, rel=1e-6), f"seed {seed}"
        dearer += _emitted(profile, work, papers, carbon, seconds, lasts) > best * (1 + 1e-6)
    assert dearer > 0, "none of these tells the two plans apart"


def test_plans_that_emit_the_same_begin_as_early_as_they_can() -> None:
    profile = ServerProfile([1, 2], [1.0, 2.0], [1.0, 2.0])
    assert cleanest(profile, 2.0, np.full(4, 7.0), np.ones(4), np.full(4, 2), np.ones(4)) == [2, 0, 0, 0]


def test_a_job_emits_less_than_by_the_papers_plan_or_as_much(tmp_path: Path) -> None:
    """Runs of one job as users make them: `compat` asks for the paper's plan."""
    less = 0
    for seed in range(15):
        draw = np.random.default_rng(seed)
        grid = hourly(tmp_path, draw.uniform(50, 500, 12).round(3))
        speeds = np.cumsum(np.sort(draw.uniform(0.3, 1.0, int(draw.integers(1, 5))))[::-1])
        hours = float(draw.uniform(0.3, 4.0))
        job = {"job": "a", "arrival": 0.0, "gpus": 1, "duration": hours * 3600, "min_gpus": 1, "max_gpus": len(speeds)}
        job |= {"deadline": max(hours, float(draw.uniform(2.0, 9.0))) * 3600}
        job |= {"options": "|".join(f"gpu:{n}={hours * 3600 * speeds[0] / speed}" for n, speed in enumerate(speeds, 1))}
        ours, papers = (
            simulate([job], "1x8", "carbonscaler", settings=given, carbon=grid, power="gpu=1000/0").summary["carbon_kg"]
            for given in ({}, {"compat": "carbonscaler"})
        )
        assert ours <= papers * (1 + 1e-6), f"seed {seed}"
        less += ours < papers * (1 - 1e-6)
    assert less > 0
