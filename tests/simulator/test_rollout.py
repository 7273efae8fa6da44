"""Rolling a snapshot forward with the true amounts of work gives the rest of the run that the snapshot is from."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.engine.drivers.futures import Rolled
from gantline.engine.drivers.journal import Journal
from gantline.simulator.rollout import rollout
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


class Watching(Journal):
    """Keeps every snapshot as a policy saw it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[dict] = []

    def decided(self, snapshot, plan) -> None:
        self.seen.append(encode_snapshot(snapshot))


def only(snapshot: Snapshot, policy: str, **how) -> Rolled:
    """The one future of a snapshot."""
    (rolled,) = rollout(snapshot, policy, **how)[0]
    return rolled


def jobs(seed: int, count: int = 14) -> Trace:
    random = np.random.default_rng(seed)
    rows = [
        {"job": f"j{k}", "arrival": float(10 * k), "gpus": int(random.choice([1, 1, 2, 4])), "duration": float(random.integers(50, 900))}
        for k in range(count)
    ]
    return Trace.from_records(rows)


@pytest.mark.parametrize("policy", ["fifo", "srtf", "las", "tiresias", "afs", "gavel.max_min_fairness_perf"])
@pytest.mark.parametrize("options", [{}, {"round": 60.0}], ids=["events", "rounds"])
def test_the_rest_of_the_run_from_its_middle(policy, options):
    trace = jobs(3)
    watching = Watching()
    run = simulate(trace, "2x4", policy, record=watching, **options)
    truth = {row["job"]: row for row in run.jobs.to_dicts()}
    last = max(row["arrival"] for row in truth.values())
    checked = 0
    for document in watching.seen:
        if document["now"] < last or not document["jobs"]:
            continue
        snapshot = decode_snapshot(document)
        ids = snapshot.jobs.ids
        rolled = only(snapshot, policy, draws=np.array([[truth[name]["duration"] for name in ids]]))
        assert rolled.finish.tolist() == pytest.approx([truth[name]["finish"] for name in ids], rel=1e-9), document["now"]
        assert rolled.incidents == ()
        checked += 1
        if checked == 6:
            break
    assert checked


def tiny(**more) -> Snapshot:
    jobs = [
        {"id": "big", "gpus": 4, "estimate": 400, "devices": [0, 1, 2, 3]},
        {"id": "next", "gpus": 4, "estimate": 100, "arrival": 1},
    ]
    return decode_snapshot({"now": 10, "cluster": "1x4", "jobs": jobs, **more})


def test_estimates_stand_in_for_the_truth_and_the_snapshot_is_left_alone():
    snapshot = tiny()
    before = encode_snapshot(snapshot)
    rolled = only(snapshot, "fifo")
    assert rolled.start.tolist() == [10, 410]
    assert rolled.finish.tolist() == [410, 510]
    assert encode_snapshot(snapshot) == before


def test_beyond_the_horizon_nothing_is_known():
    rolled = only(tiny(), "fifo", until=210)
    assert rolled.start.tolist() == [10, np.inf]
    assert rolled.finish.tolist() == [np.inf, np.inf]


def test_a_job_that_must_be_done_already_ends_at_once():
    assert only(tiny(), "fifo", draws=np.array([[0.0, 100.0]])).finish.tolist() == pytest.approx([10, 110], abs=1e-3)


def test_orders_on_their_way_count_as_carried_out():
    jobs = [{"id": "a", "gpus": 4, "estimate": 50, "devices": [0, 1, 2, 3], "phase": "starting"}, {"id": "b", "gpus": 4, "estimate": 50}]
    rolled = only(decode_snapshot({"now": 0, "cluster": "1x4", "jobs": jobs}), "fifo")
    assert rolled.finish.tolist() == [50, 100]
