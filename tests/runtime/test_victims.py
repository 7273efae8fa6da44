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
        jobs = []
        for estimate in (9000.0, 5000.0):  # the second has less to do, and has done less
            jobs += scheduler.submit(asleep(estimate))
            until(lambda: state(scheduler, jobs[-1]) == "running")
        jobs += scheduler.submit(asleep(50.0))
        until(lambda: state(scheduler, jobs[2]) == "running")
        assert [state(scheduler, job) for job in jobs[:2]].index("pending") == left_out
        if victims == "least-lost":
            with pytest.raises(RefusedError, match="'afs' assigns devices"):
                scheduler.use("afs")
            assert scheduler.view().policy == "srtf"
