"""One scheduler, two clocks: every policy that there is drives real processes, and each takes over from the one before."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.specs import ended, running, shell

from gantline.policies.registry import policy_names
from gantline.runtime.records import MemoryStore
from gantline.runtime.scheduler import Scheduler

NOT_LIVE = {
    "recorded": "follows a table of decisions that were made elsewhere",
    "gaia": "needs the carbon intensity of the grid, which a live service does not read",
    "carbonscaler": "the same",
}
BRIEF = {name: {"size": 6, "generations": 3} for name in ("pollux", "adaptdl")}  # a search as long as theirs is not the subject
POLICIES = [name for name in policy_names() if name not in NOT_LIVE]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory):
    """With a job on one of its devices that whoever takes over finds there, and that outlasts them all."""
    with running(tmp_path_factory.mktemp("home"), "cpu:3", store=MemoryStore()) as found:
        found.submit(shell("exec sleep 1000", estimate=1000.0))
        yield found


@pytest.mark.parametrize("policy", POLICIES)
def test_it_takes_over_and_serves_the_queue(scheduler: Scheduler, policy: str) -> None:
    scheduler.use(policy, BRIEF.get(policy, {}))
    lost = scheduler.view().counters["lost_turns"]
    (job,) = scheduler.submit(shell("true", gpus=2, estimate=60.0))
    assert ended(scheduler, job) == ["succeeded"]
    assert scheduler.view().counters["lost_turns"] == lost, scheduler.view().incidents[-1]


def test_nobody_is_left_out() -> None:
    assert set(POLICIES) | set(NOT_LIVE) == set(policy_names())


def test_a_policy_that_is_not_there_changes_nothing(scheduler: Scheduler, tmp_path: Path) -> None:
    before = scheduler.view().policy
    with pytest.raises(Exception, match="no policy"):
        scheduler.use("sfrt")
    assert scheduler.view().policy == before
