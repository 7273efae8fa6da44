"""What need not stop a gang (other devices, a rest between turns, a save) keeps the promises too, whatever messages do."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from tests.engine.stories import Ending, tell

from gantline.core.columns import Job
from gantline.core.inputs import Action, JobRequest
from gantline.engine.drivers.faulty import Faults
from gantline.engine.executor import Can

EVERYTHING = frozenset(Can)


def requests(seed: int) -> tuple[JobRequest, ...]:
    """Somebody wants jobs to save now and then."""
    rng = random.Random(f"wishes {seed}")
    return tuple(JobRequest(rng.uniform(20, 300), Action.SAVE, "j0") for _ in range(rng.randint(0, 3)))


def well(ending: Ending, seed: int) -> None:
    assert not ending.executor.breaches, f"seed {seed}: {ending.executor.breaches[:3]}"
    assert not ending.unfinished, f"seed {seed}: {ending.unfinished} never finished"
    assert not ending.loop.engine.incidents, f"seed {seed}: {ending.loop.engine.incidents[:2]}"


@pytest.mark.parametrize("policy", ["breathers", "rota", "paired rota", "pairs", "wanderers"])
@pytest.mark.parametrize("able", [EVERYTHING, frozenset(), frozenset({Can.DEVICES, Can.SHARE}), frozenset({Can.SUSPEND, Can.SAVE})])
def test_every_scenario_ends_well(policy: str, able: frozenset[Can]) -> None:
    done: Counter[Can] = Counter()
    for seed in range(3):
        ending = tell(seed, policy=policy, able=able, requests=requests(seed))
        well(ending, seed)
        done += ending.executor.in_place
    usual = {
        "breathers": Can.DEVICES,
        "rota": Can.SUSPEND,
        "paired rota": Can.SUSPEND,
        "pairs": Can.SAVE,
        "wanderers": Can.MOVE,
    }[policy]
    assert {what for what, times in done.items() if times} <= able
    assert usual not in able or done[usual], "what need not stop a gang did not"


def test_who_can_grow_in_place_is_not_stopped_for_it() -> None:
    """The executor that cannot stops and starts: its gangs lose what they had not saved, those that go on lose nothing."""
    slow = Faults(start=(5.0, 5.0), stop=(5.0, 5.0), release=(1.0, 1.0), checkpoint=math.inf)
    for seed in range(4):
        able, unable = (tell(seed, faults=slow, policy="breathers", able=can) for can in (EVERYTHING, frozenset({Can.SHARE, Can.BATCH})))
        well(able, seed)
        well(unable, seed)
        assert able.tables.F[Job.FINISH].max() <= unable.tables.F[Job.FINISH].max()


def test_a_save_on_demand_keeps_work_through_a_failure() -> None:
    from gantline.core.inputs import NodeEvent  # the only scenario with both

    slow = Faults(checkpoint=math.inf)
    lost = []
    for wanted in ((), (JobRequest(90.0, Action.SAVE, "j0"),)):
        ending = tell(
            3,
            faults=slow,
            policy="fifo",
            able=EVERYTHING,
            requests=(*wanted, NodeEvent(95.0, "node0", "down"), NodeEvent(96.0, "node0", "up")),
        )
        well(ending, 3)
        lost.append(float(np.nansum(ending.tables.F[Job.LOST])))
    assert lost[1] < lost[0]
