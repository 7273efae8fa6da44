"""Elastic jobs: curves as promised, the same jobs rigid, settings that are refused."""

from __future__ import annotations

import pytest

from gantline.core.errors import UsageError
from gantline.models.links.slowest_link_scaling import Scaling
from gantline.traces.faults import contradictions
from gantline.traces.generators import generate
from gantline.traces.options import parse_options


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
