"""A look rolled forward is what Slurm does next: with true run times and the jobs that really come, every start is exact.

So forecasts err only as far as run times and newcomers are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.live.watch.simulated_slurm import Queue, shown

from gantline.core.inputs import Submit
from gantline.core.snapshot_json import decode_snapshot
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import read_state
from gantline.live.watch.watched import Document
from gantline.simulator.rollout import rollout
from gantline.traces.files.policies import load_policy


@pytest.mark.parametrize("seed", [4, 6, 9])
def test_with_the_truth_every_start_is_exact(seed: int) -> None:
    """Half an hour after a full one."""
    load, before, hours = 1.6, 1.0, 0.5
    jobs = Queue(load=load, load_before=load, seed=seed, before=before, hours=hours).jobs()
    now, end = before * 3600.0, (before + hours) * 3600.0
    look, later = (watched(read_state(shown(jobs, at, accounting=True))) for at in (now, end))
    zero = look.zero - (look.at - now)
    true = {job["job"]: job for job in jobs}
    came = [job for job in jobs if now < job["arrival"] <= end]
    asked = later.arrivals[-len(came) :]  # as a later look has them, priorities without their age
    newcomers = [_submitted(job, entry, zero) for job, entry in zip(came, asked)]
    snapshot = decode_snapshot(look.snapshot)
    work = np.array([[true[name]["duration"] for name in snapshot.jobs.ids]], dtype=np.float64)
    policy = load_policy(look.policy, look.settings)
    rolled = rollout(snapshot, policy, draws=work, until=end - zero, newcomers=lambda _: newcomers)[0]
    starts = {name: at + zero for name, at in zip(snapshot.jobs.ids, rolled.start[0])}
    waited = [name for name in look.queue if true[name]["start"] <= end]
    assert len(waited) >= 5
    assert {name: starts[name] for name in waited} == {name: true[name]["start"] for name in waited}


def _submitted(job: Mapping[str, Any], entry: Document, zero: float) -> Submit:
    known = {key: value for key, value in entry.items() if key != "arrival"}
    return Submit(job["arrival"] - zero, {**known, "id": job["job"]}, float(job["duration"]))
