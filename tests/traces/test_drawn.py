"""What a generator has drawn is the same trace as its frame."""

from __future__ import annotations

import numpy as np
import pytest

from gantline import Trace, parse_cluster, simulate
from gantline.core.areas import mean
from gantline.engine.assembly.load import load_tables
from gantline.lab.report.metrics import steadiness
from gantline.lab.report.metrics.columns import time_mean
from gantline.simulator.series import queue_steps
from gantline.traces.drawn import MOST, Drawn

SETTINGS = {
    "jobs": 150,
    "priorities": "1:0.5,2:0.5",
    "types": "v100:1,k80:2",
    "cpus_per_gpu": 4,
    "memory_per_gpu": 3.5,
    "users": "ömer:1,li:2",
}


def test_its_hash_its_columns_and_its_tables_are_those_of_its_frame() -> None:
    drawn = Trace.generate("day", seed=3, **SETTINGS)
    framed = Trace(drawn.frame, drawn.source)
    assert isinstance(drawn.given, Drawn)
    assert (drawn.hash, len(drawn), drawn.columns) == (framed.hash, len(framed), framed.columns)
    cluster = parse_cluster("v100:4x8/64c/512g,k80:4x8/64c/512g")
    mine, theirs = load_tables(drawn, cluster), load_tables(framed, cluster)
    for one, other in ((mine.F, theirs.F), (mine.I, theirs.I), (mine.options.F, theirs.options.F), (mine.options.I, theirs.options.I)):
        np.testing.assert_array_equal(one, other)
    assert (mine.ids, mine.users, mine.queues, mine.models) == (theirs.ids, theirs.users, theirs.queues, theirs.models)


def test_many_jobs_and_empty_cells_are_a_frame_from_the_start() -> None:
    assert not isinstance(Trace.generate("day", jobs=MOST + 1).given, Drawn)
    with_deadlines = Trace.generate("day", jobs=50, deadline_share=0.5)
    assert not isinstance(with_deadlines.given, Drawn)
    assert with_deadlines.frame["deadline"].null_count() > 0


@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_the_queue_over_time_is_that_of_the_series(policy: str) -> None:
    run = simulate(Trace.generate("day", seed=1, jobs=120), "2x8", policy, until=60_000)
    steps = queue_steps(run.tables, run.log)
    for start, end in ((0.0, 2e4), (1e4, 5e4), (3e4, 6e4)):
        assert mean(steps, start, end) == pytest.approx(time_mean(run.series, "queued", start, end))
    assert run.summary["preemptions"] > 0 or policy == "fifo"
    assert steadiness(run).queue_means[-1] > 0
