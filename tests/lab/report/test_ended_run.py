"""An objective of a finished run is the metric of the same name."""

from __future__ import annotations

import polars as pl
import pytest

import gantline
from gantline.lab.report.metrics import measure
from gantline.lab.report.metrics.measure import ended_run
from gantline.simulator.objective import WORDS


def a_run(**options: object) -> gantline.Run:
    jobs = pl.DataFrame(
        {
            "job": [f"job-{number}" for number in range(40)],
            "arrival": [60.0 * number for number in range(40)],
            "gpus": [1 + number % 4 for number in range(40)],
            "duration": [100.0 + 37.0 * (number * 7 % 11) for number in range(40)],
            "deadline": [60.0 * number + 600.0 if number % 3 else None for number in range(40)],
        }
    )
    return gantline.simulate(jobs, "1x4", "fifo", prices="gpu=3", power="gpu=300/60", **options)


@pytest.mark.parametrize("options", [{}, {"track": (10, 29)}])
def test_every_word_agrees_with_the_metrics(options: dict[str, object]) -> None:
    run = a_run(**options)
    found, metrics = ended_run(run), measure(run)
    for word, known in WORDS.items():
        expected = metrics[known.metric]
        assert found.value(word) == pytest.approx(1.0 - expected if word == "deadlines" else expected, nan_ok=bool(options)), word
