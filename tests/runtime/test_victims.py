"""Which live jobs are stopped for one that ranks higher: the lowest in the order, or those that lose least."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.specs import Spec, running, state, until

from gantline.core.errors import RefusedError
from gantline.runtime.launch import Launch
from gantline.runtime.setup import Setup


def asleep(estimate: float) -> Spec:
    """A job that saves nothing by itself."""
    return Spec(Launch(("sleep 600",), shell=True, grace=5.0), job={"gpus": 1, "estimate": estimate, "checkpoint": "inf"})


@pytest.mark.parametrize(("victims", "left_out"), [("order", 0), ("least-lost", 1)])
def test_the_job_that_loses_least_is_stopped(tmp_path: Path, victims: str, left_out: int) -> None:
    with running(tmp_path, "cpu:2", "srtf", setup=Setup(victims=victims)) as scheduler:
        (first,) = scheduler.submit(asleep(9000.0))
        until(lambda: state(scheduler, first) == "running")
        (second,) = scheduler.submit(asleep(5000.0))  # it has less to do, and has done less
        until(lambda: state(scheduler, second) == "running")
        (urgent,) = scheduler.submit(asleep(50.0))
        until(lambda: state(scheduler, urgent) == "running")
        assert [state(scheduler, job) for job in (first, second)].index("pending") == left_out
        if victims == "least-lost":
            with pytest.raises(RefusedError, match="'afs' assigns devices"):
                scheduler.use("afs")
            assert scheduler.view().policy == "srtf"
