"""Curves that are learned: what was tried is believed, what was not is never made up from thin air."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.engine.assigning import watched

from gantline import simulate
from gantline.core.errors import GantlineError, UsageError
from gantline.core.policy import Source
from gantline.core.snapshot_json import decode_snapshot
from gantline.models.learned_curves import LearnedCurves, believed_speeds, read_scaling
from gantline.policies.elastic.policies import EqualShare
from gantline.policies.elastic.pools import pools

SIZES = np.arange(1, 9)


def test_nothing_tried_is_in_proportion_to_the_request() -> None:
    speeds, source = believed_speeds({}, 4, SIZES)
    assert speeds.tolist() == (SIZES / 4).tolist()
    assert set(source.tolist()) == {int(Source.DEFAULT)}


def test_one_worker_that_was_never_tried_follows_from_the_smallest_that_was() -> None:
    speeds, source = believed_speeds({"2": [3, 1.8], "4": [1, 2.4]}, 1, SIZES)
    assert speeds.tolist() == pytest.approx([0.9, 1.8, 2.1, 2.4, 3.0, 3.6, 4.2, 4.8])
    assert [Source(code).name for code in source[:5]] == ["DEFAULT", "MEASURED", "SIMILAR", "MEASURED", "DEFAULT"]


TABLE = "gpu:1=1000|gpu:2=600|gpu:3=500|gpu:4=460"


def job(name: str, arrival: float = 0.0) -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": 1, "duration": 1000.0, "min_gpus": 1, "max_gpus": 4, "options": TABLE}


def test_gangs_go_at_the_listed_speeds_whatever_is_believed() -> None:
    run = simulate([job("a")], "gpu:1x4", "equal-share", scaling="learned:0")
    assert run.summary["average_jct"] == pytest.approx(460.0)


def test_policies_see_what_was_reported() -> None:
    model = LearnedCurves(noise=0.0)
    listed = [{"gpus": 1, "rate": 1.0}, {"gpus": 2, "rate": 1.7}, {"gpus": 4, "rate": 2.2}]
    jobs = [{"id": name, "gpus": 1, "min_gpus": 1, "max_gpus": 4, "estimate": 900.0, "options": listed} for name in ("a", "b")]
    learned = {"a": {"2": [5, 1.6]}}
    snapshot = decode_snapshot({"cluster": "gpu:1x4", "now": 50.0, "jobs": jobs, "learned": learned}, model)
    (pool,) = pools(snapshot)
    assert pool.curves.rate.tolist() == pytest.approx([0.8, 1.6, 3.2, 1.0, 2.0, 4.0])
    assert pool.curves.unit.tolist() == pytest.approx([0.8, 1.0])


def test_reports_are_averaged_and_start_when_work_is_done() -> None:
    seen: list[Any] = []
    looking = watched(EqualShare, lambda snapshot: seen.append(snapshot.learned))
    simulate([job("a"), job("b", 100.0), job("c", 200.0)], "gpu:1x4", looking, scaling="learned:0.0")
    assert not seen[0]
    assert seen[1] == {"a": {"4": [1, pytest.approx(1000 / 460)]}}
    assert seen[2]["a"]["2"] == [1, pytest.approx(1000 / 600)]


@pytest.mark.parametrize("policy", ["afs", "ffdl", "voda.elastic_tiresias", "voda.afs_l", "optimus"])
def test_all_jobs_end_when_speeds_are_learned(policy: str) -> None:
    run = simulate([job(f"j{k}", 50.0 * k) for k in range(6)], "gpu:2x4", policy, scaling="learned:0.1", costs="stop-free")
    assert run.summary["completed"] == 6
    assert run.summary["lost_turns"] == 0


def test_wrong_words_are_refused() -> None:
    assert read_scaling("listed") is None
    assert read_scaling("learned") == 0.05
    for wrong in ("guessed", "learned:x", "listed:1"):
        with pytest.raises(UsageError, match="no way to know speeds"):
            read_scaling(wrong)
    with pytest.raises(UsageError, match="noise is 2"):
        read_scaling("learned:2")
    with pytest.raises(GantlineError, match="nothing like --scaling"):
        simulate([job("a")], "gpu:1x4", "elasticflow", scaling="learned", regime="elasticflow", round=60)
