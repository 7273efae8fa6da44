"""The environment: Gymnasium's own checks, rewards that add up to the objective, actions that mean what they say."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import gantline
from gantline.core.errors import GantlineError
from gantline.lab.environment import CLUSTER_FEATURES, JOB_FEATURES, ClusterEnv, make_vec
from gantline.lab.report.metrics.measure import ended_run
from gantline.simulator.objective import Objective
from gantline.traces.trace import Trace

SETTINGS = {"jobs": 30, "gpus": 16, "load": 1.5}
WORKLOAD = {"generate": "day", "settings": SETTINGS}


def env(act: str = "order", **more: Any) -> ClusterEnv:
    return ClusterEnv(more.pop("trace", WORKLOAD), "4x4", act=act, slots=more.pop("slots", 12), **more)


def played(one: ClusterEnv, act: Any, seed: int = 3) -> tuple[float, dict[str, Any]]:
    """The return of an episode, and the last info."""
    observation, info = one.reset(seed=0, options={"seed": seed})
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = one.step(act(observation, info))
        assert one.observation_space.contains(observation)
        total, over = total + reward, terminated or truncated
    return total, info


def saved(jobs: list[dict[str, Any]], folder: Path) -> str:
    return str(Trace.from_records(jobs).save(folder / "jobs.csv"))


ACTS = {
    "order": lambda observation, info: -observation["jobs"][:, JOB_FEATURES.index("remaining")],
    "pick": lambda observation, info: int(info["allowed"].argmax()),
    "sizes": lambda observation, info: np.full(12, 2),
}


@pytest.mark.parametrize("act", ACTS)
def test_gymnasium_finds_nothing_to_complain_about(act: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make("gantline/Cluster-v0", trace=WORKLOAD, cluster="4x4", act=act, slots=12).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("objective", ["mean-jct", "worst-rho", "makespan", "0.7*mean-jct+0.3*worst-rho"])
@pytest.mark.parametrize("act", ACTS)
def test_rewards_add_up_to_the_objective_beside_fifo(act: str, objective: str) -> None:
    total, info = played(env(act, objective=objective), ACTS[act])
    wanted = Objective.parse(objective)
    fifo = wanted.values(ended_run(gantline.simulate(Trace.generate("day", 3, **SETTINGS), "4x4", "fifo", seed=3)))
    assert info["fifo"] == pytest.approx(fifo)
    assert total == pytest.approx(-wanted.proportion(info["values"], fifo))


def test_an_order_is_the_schedule_of_the_policy_with_that_order() -> None:
    """Least remaining work first, every job with a row and the right to stop others: that is SRTF."""
    _, gentle = played(env(slots=30), ACTS["order"])
    _, preempting = played(env(slots=30, preempt=True), ACTS["order"])
    run = gantline.simulate(Trace.generate("day", 3, **SETTINGS), "4x4", "srtf")
    assert preempting["values"]["mean-jct"] == pytest.approx(run.summary["average_jct"])
    assert gentle["values"]["mean-jct"] > preempting["values"]["mean-jct"]


def test_the_row_that_is_picked_starts(tmp_path: Path) -> None:
    jobs = [{"job": name, "arrival": 0, "gpus": 16, "duration": 100 * (1 + number)} for number, name in enumerate("abc")]
    one = env("pick", trace=saved(jobs, tmp_path))
    observation, info = one.reset()
    assert observation["jobs"][:3, 0].tolist() == [1, 1, 1]
    assert info["allowed"].tolist() == [True] * 3 + [False] * 9 + [True]
    one.step(2)
    assert [one._snapshot.jobs.ids[place] for place in range(len(one._snapshot.jobs))] == ["a", "b"], "c has run, and the others wait"
    _, _, over, _, _ = one.step(12)
    assert not over, "nothing runs, so the first is started although none was picked"
    assert one._snapshot.jobs.ids == ["b"]


def test_several_are_picked_at_one_instant(tmp_path: Path) -> None:
    jobs = [{"job": name, "arrival": 0, "gpus": 8, "duration": 100} for name in "abc"]
    one = env("pick", trace=saved(jobs, tmp_path))
    one.reset()
    observation, reward, _, _, info = one.step(1)
    assert (info["now"], reward) == (0.0, 0.0)
    assert observation["jobs"][:3, JOB_FEATURES.index("chosen")].tolist() == [0, 1, 0]
    assert not info["allowed"][1]
    _, reward, _, _, info = one.step(2)
    assert info["now"] == 100.0
    assert reward < 0


def test_sizes_are_given(tmp_path: Path) -> None:
    jobs = [{"job": name, "arrival": 0, "gpus": 4, "min_gpus": 2, "max_gpus": 8, "duration": 100} for name in "ab"]
    for size, seconds in ((1, 200.0), (2, 100.0), (3, 50.0)):
        _, info = played(env("sizes", trace=saved(jobs, tmp_path)), lambda observation, info, size=size: np.full(12, size))
        assert info["values"]["mean-jct"] == pytest.approx(seconds), size


def test_environments_run_side_by_side() -> None:
    several = make_vec(2, trace=WORKLOAD, cluster="4x4", act="order", slots=12)
    observations, _ = several.reset(seed=1)
    assert observations["jobs"].shape == (2, 12, len(JOB_FEATURES))
    observations, rewards, *_ = several.step(several.action_space.sample())
    assert observations["cluster"].shape == (2, len(CLUSTER_FEATURES))
    assert rewards.shape == (2,)
    several.close()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"act": "guess"}, "no action 'guess'"),
        ({"slots": 0}, "0 rows show no job"),
        ({"act": "pick", "preempt": True}, "preempt: 'pick' decides by itself"),
        ({"seeds": []}, "seeds: names none"),
        ({"objective": "dollars"}, "'dollars' is not known while a run goes on"),
        ({"objective": "slow"}, "no objective 'slow'"),
        ({"trace": 5}, "5 is no trace"),
        ({"regime": "gavel"}, "regime 'gavel' has a loop of its own"),
        ({"colour": "red"}, "no option 'colour'"),
    ],
)
def test_a_mistake_is_one_clear_message(given: dict[str, Any], told: str) -> None:
    with pytest.raises(GantlineError) as caught:
        env(**given)
    assert told in str(caught.value)


def test_what_a_workload_cannot_answer_is_refused_at_its_beginning() -> None:
    with pytest.raises(GantlineError, match="no job has a deadline"):
        env(objective="deadlines").reset()
    with pytest.raises(GantlineError, match="call reset first"):
        env().step(np.zeros(12))
    with pytest.raises(GantlineError, match="no option 'sed'"):
        env().reset(options={"sed": 1})


def test_without_gymnasium_the_features_remain_and_the_environment_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "from gantline.lab.environment import job_features\n"
        "try:\n    from gantline.lab.environment import ClusterEnv\n"
        "except Exception as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'gantline[learn]'" in found.stdout
