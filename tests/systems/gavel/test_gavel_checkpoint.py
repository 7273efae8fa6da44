"""A long simulation in Gavel's rounds is saved, and gone on with as if it had never stopped."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.systems.gavel.tiny_world import table, trace

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

JOBS = trace(*(("big" if k % 3 else "small", 3000.0 + 700.0 * k, 500.0 * k) for k in range(14)))
CLUSTER = "v100:1,p100:1,k80:1"
HALF = 4000.0


def go(policy: str = "max_min_fairness_perf", settings: dict[str, Any] | None = None, jobs: Any = JOBS, **more: Any) -> Run:
    return simulate(
        jobs, more.pop("cluster", CLUSTER), f"gavel.{policy}", settings=settings or {}, throughputs=table(), regime="gavel", **more
    )


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("max_min_fairness_perf", {}),
        ("max_min_fairness", {"compat": "gavel"}),
        ("finish_time_fairness_perf", {"compat": "gavel"}),
        ("fifo", {"compat": "gavel"}),
        ("fifo", {}),
        ("allox", {}),
        ("gandiva", {}),
        ("max_min_fairness_packed", {"profiling": 0.5}),
    ],
)
def test_a_resumed_run_equals_one_that_never_stopped(policy: str, settings: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"
    whole = go(policy, settings, seed=3)
    first = go(policy, settings, seed=3, until=HALF, checkpoint=file)
    assert 0 < first.summary["completed"] < len(JOBS)
    rest = go(policy, settings, seed=3, resume=file)
    assert rest.summary["log_hash"] == whole.summary["log_hash"]
    assert rest.jobs.equals(whole.jobs, null_equal=True)
    kept = ("rounds", "allocation_calls", "lease_extensions", "lease_extension_opportunities", "credited_utilization", "most_active_jobs")
    for told in kept:
        assert rest.summary[told] == whole.summary[told]


def test_a_run_that_dies_is_gone_on_with_from_the_last_save(tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"

    def die(now: float, arrived: int, active: int) -> None:
        if now > 2 * HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(checkpoint=file, checkpoint_every=1000.0, on_progress=die)
    assert go(resume=file).summary["log_hash"] == go().summary["log_hash"]
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


def test_a_checkpoint_of_another_run_is_refused_with_what_differs(tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"
    go(until=HALF, checkpoint=file)
    for words, changes in (
        ("policy was 'gavel.max_min_fairness_perf', now it is 'gavel.isolated'", {"policy": "isolated"}),
        ("seed was 0, now it is 1", {"seed": 1}),
        ("parameters was", {"settings": {"spacing": 60.0}}),
        ("jobs and speeds was", {"jobs": Trace(JOBS.frame.with_columns(pl.col("work") * 2))}),
        ("devices was", {"cluster": "v100:2,p100:1,k80:1"}),
        ("round was 360.0, now it is 60.0", {"round": 60.0}),
    ):
        with pytest.raises(RefusedError, match=words):
            go(**{"resume": file, **changes})  # type: ignore[arg-type]


def test_files_that_are_no_checkpoints_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "run.ckpt"
    with pytest.raises(NotFoundError, match="no such file"):
        go(resume=file)
    file.write_text("job,arrival\n")
    with pytest.raises(UsageError, match="no checkpoint, or a damaged one"):
        go(resume=file)
    with file.open("wb") as target:
        np.savez(target, head=np.array('{"format": "gantline-checkpoint", "version": 99}'))
    with pytest.raises(RefusedError, match="another version of Gantline"):
        go(resume=file)


def without(source: Path, target: Path, name: str, head: bool = True) -> Path:
    """A checkpoint that lacks one of its parts: a name in its head, or an array."""
    with np.load(source) as stored:
        arrays = {each: stored[each] for each in stored.files}
    if head:
        told = json.loads(str(arrays["head"]))
        del (told if name in told else told["fits"])[name]
        arrays["head"] = np.array(json.dumps(told))
    else:
        del arrays[name]
    with target.open("wb") as file:
        np.savez(file, **arrays)
    return target


def test_a_checkpoint_that_lacks_a_part_is_damaged_and_says_which(tmp_path: Path) -> None:
    """Every name in the head, what identifies the run among them, and every array."""
    whole, file = tmp_path / "run.ckpt", tmp_path / "part.ckpt"
    go(until=HALF, checkpoint=whole)
    with np.load(whole) as stored:
        told, arrays = json.loads(str(stored["head"])), [name for name in stored.files if name != "head"]
    parts = [*(name for name in told if name not in ("format", "version")), *told["fits"]]
    for name, head in (*((name, True) for name in parts), *((name, False) for name in arrays)):
        with pytest.raises(UsageError, match=f"is damaged: '{re.escape(name)}' is missing"):
            go(resume=without(whole, file, name, head))


def test_who_has_no_checkpoints_says_so(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="regime 'default' has no checkpoints"):
        simulate(JOBS, CLUSTER, "fifo", throughputs=table(), checkpoint=tmp_path / "a")
    with pytest.raises(RefusedError, match="knows no checkpoints of ideal shares"):
        go(settings={"ideal": True}, checkpoint=tmp_path / "a")
