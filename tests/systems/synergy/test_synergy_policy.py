"""Synergy on the default engine: CPUs and memory change in place, jobs stay where they are, and both clocks agree."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.jobs import by_job
from tests.systems.synergy.test_synergy_regime import PROFILES

from gantline.core.errors import GantlineError
from gantline.models.model import Gang, PerformanceModel
from gantline.models.sensitivity import SensitivityProfile, measure_epochs
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.synergy.policies.mechanisms import Cell, JobKind, best_cells, useful_cells
from gantline.systems.synergy.policies.policy import MECHANISMS
from gantline.systems.synergy.traces import read_profiles

NETWORKS = ("vision", "speech", "text")


def job(name: str, network: str, length: float, at: float = 0.0, gpus: int = 1, **more: Any) -> dict[str, Any]:
    """So long at the proportional share."""
    return {"job": name, "arrival": at, "gpus": gpus, "duration": length, "model": network, **more}


def run(
    *jobs: dict[str, Any], cluster: str = "1x4/12c/250g", policy: str = "synergy", options: dict[str, Any] | None = None, **set_: Any
) -> Run:
    given = {"performance": "sensitivity", "profiles": str(PROFILES)} | (options or {})
    return simulate(list(jobs), cluster, policy, settings=set_, **given)


def ends(found: Run) -> dict[str, float]:
    return by_job(found, "finish")


def test_a_job_gives_cpus_up_for_another_and_gets_them_back_without_a_restart() -> None:
    found = run(job("old", "vision", 4400.0), job("new", "vision", 300.0, at=1000.0), job("text", "text", 300.0, at=1000.0), order="fifo")

    # the text job needs one CPU; nine and three are taken, so the old job has its share while the others run
    assert ends(found) == {"old": pytest.approx(1000 + 300 + (4400 - 2200 - 300) / 2.2), "new": 1300.0, "text": 1300.0}
    assert found.jobs["restarts"].to_list() == [0, 0, 0]
    assert len(found.allocations) == 3


@pytest.mark.parametrize(
    ("mechanism", "end"), [("fair", 2200.0), ("greedy", 2000.0), ("tune", 1000.0 + 1200.0 / 2.2), ("opt", 1000 + 100.0 / 2.2)]
)
def test_each_mechanism_divides_twelve_cpus_between_two_jobs_that_can_use_nine(mechanism: str, end: float) -> None:
    found = run(job("a", "vision", 2200.0), job("b", "vision", 2200.0), order="fifo", mechanism=mechanism)

    assert max(ends(found).values()) == pytest.approx(end, abs=400 if mechanism == "opt" else 1e-6)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_jobs_without_profiles_have_their_share_under_every_mechanism(mechanism: str) -> None:
    found = simulate([job("a", "new", 300.0), job("b", "newer", 300.0)], "1x4/12c/250g", "synergy", settings={"mechanism": mechanism})

    assert ends(found) == {"a": 300.0, "b": 300.0}


def test_the_model_counts_under_every_policy_what_a_job_asks_for() -> None:
    asked = job("asks", "vision", 2200.0, cpus=9, memory=62.5)
    starved = job("starved", "vision", 2200.0, cpus=1, memory=62.5)
    nothing = job("nothing", "vision", 2200.0)

    assert ends(run(asked, starved, nothing, policy="fifo")) == {
        "asks": pytest.approx(1000.0),
        "starved": pytest.approx(2200.0 / 0.35),
        "nothing": pytest.approx(2200.0),
    }


@dataclass(frozen=True)
class FasterWithNine(PerformanceModel):
    """Twice as fast with nine CPUs."""

    def granted(self, gang: Gang) -> float | None:
        return 2.0 if gang.grant is not None and gang.grant.assignment.cpus == 9.0 else None


def test_what_a_job_declares_serves_where_there_are_no_profiles() -> None:
    jobs = [job("keen", "vision", 1000.0, best_cpus=9.0, best_speed=2.0), job("other", "text", 1000.0)]

    assert ends(run(*jobs, options={"performance": FasterWithNine(), "profiles": ""})) == {"keen": 500.0, "other": 1000.0}


def test_a_job_of_several_gpus_gives_back_what_it_has_beyond_its_share_on_all_of_them() -> None:
    """The first job has all the memory of the server; the second one starts at once with half of it, and both have two GPUs."""
    jobs = [job("keen", "vision", 1000.0, gpus=2, best_memory=125.0, best_speed=2.0), job("other", "text", 1000.0, gpus=2)]
    found = run(*jobs, options={"performance": FasterWithNine(), "profiles": ""}, order="fifo")
    assert found.jobs["first_start"].to_list() == [0.0, 0.0]


def test_a_cluster_that_says_nothing_of_cpus_is_refused_by_the_model_and_served_by_the_policy() -> None:
    with pytest.raises(GantlineError, match="does not say how many CPUs"):
        run(job("a", "vision", 100.0), cluster="1x4")
    assert ends(simulate([job("a", "vision", 100.0)], "1x4", "synergy")) == {"a": 100.0}


def test_mode_means_something_in_the_regime_only() -> None:
    with pytest.raises(GantlineError, match="'mode' is read in regime synergy only"):
        run(job("a", "vision", 100.0), mode="static")


@FEWER
@given(
    st.lists(st.tuples(st.sampled_from(NETWORKS), st.sampled_from((1, 2))), min_size=1, max_size=4),
    st.integers(3, 24),
    st.integers(60, 400),
)
def test_the_best_cells_are_those_of_trying_all(asked: list[tuple[str, int]], cpus: int, memory: int) -> None:
    networks = read_profiles(Path(PROFILES)).on((3.0, 62.5, 0.0))
    kinds = [JobKind(useful_cells(networks[name], 1.0), gpus, 1) for name, gpus in asked]

    def most(at: int, cpus: float, memory: float) -> float:
        if cpus < 0 or memory < 0:
            return -np.inf
        if at == len(kinds):
            return 0.0
        return max(
            cell.speed + most(at + 1, cpus - cell.cpus * kinds[at].gpus, memory - cell.memory * kinds[at].gpus) for cell in kinds[at].cells
        )

    found, best = best_cells(kinds, cpus, memory), most(0, cpus, memory)
    assert (found is None) == np.isinf(best)
    assert found is None or sum(cell.speed for cells in found for cell in cells) == pytest.approx(best)


def test_cells_that_another_beats_are_left_out() -> None:
    profile = read_profiles(Path(PROFILES)).on((3.0, 62.5, 0.0))["vision"]

    cells = useful_cells(profile, 1.0)

    assert cells[0] == Cell(2.2, 9.0, 62.5)
    assert {cell.memory for cell in cells} == {62.5}  # more memory buys nothing
    assert all(a.cpus > b.cpus for a, b in pairwise(cells))


def test_a_profile_between_its_points_is_that_of_the_point_below() -> None:
    profile = SensitivityProfile("n", np.array([2.0, 4.0]), np.array([10.0, 20.0]), np.array([[0.5, 0.6], [0.8, 1.0]]), 4.0, 20.0, 1.0, 1.0)

    assert [profile.at(*point) for point in ((2, 10), (3.9, 19), (4, 19), (9, 99), (1, 10), (2, 5))] == [0.5, 0.5, 0.8, 1.0, 0.25, 0.25]


# --- optimistic profiling ------------------------------------------------------------------------------------------------

EPOCHS = "model,cpus_per_gpu,epoch_s,data_GB,memory_MBps,steps\n" + "".join(
    f"reader,{cpus},{600 / cpus:g},100,10000,500\n" for cpus in (2, 3, 6)
)


@pytest.fixture
def epochs(tmp_path: Path) -> str:
    (tmp_path / "epochs.csv").write_text(EPOCHS)
    return str(tmp_path)


def test_half_as_many_cpus_are_measured_until_it_matters_then_one_fewer_at_a_time() -> None:
    asked: list[int] = []

    def measure(cpus: int) -> float:
        asked.append(cpus)
        return 600.0 / min(cpus, 4)

    measure_epochs(measure, 24)

    assert asked == [24, 12, 6, 3, 2, 1]


def test_memory_and_storage_are_computed_with_a_cache_whose_hits_are_what_it_holds(epochs: str) -> None:
    times = read_profiles(Path(epochs)).epochs["reader"]

    assert times.epoch(6, 100, 0) == 100.0  # all in memory: computing takes longer than reading 100 GB at 10 GB/s
    assert times.epoch(6, 50, 100) == pytest.approx(5.0 + 500.0)
    assert times.epoch(3, 90, 100) == 200.0  # reading takes 9 + 100 s


def test_speeds_follow_the_storage_bandwidth_of_a_gang(epochs: str) -> None:
    slow, fast = ({"storage": rate} | job(f"at {rate}", "reader", 1000.0) for rate in (50.0, 200.0))
    found = run(slow, fast, policy="fifo", cluster="1x4/12c/200g/400s", options={"profiles": epochs})

    # half of the data are cached; at the share of 100 MB/s an epoch takes 505 s
    assert ends(found) == {"at 50.0": pytest.approx(1000 * 1005 / 505), "at 200.0": pytest.approx(1000 * 255 / 505)}


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("reader,3,100,100,10000,500", "'reader' has two rows with 3 CPUs"),
        ("reader,9,100,90,10000,500", "'reader' reads 90 GB"),
        ("reader,9,0,100,10000,500", "0 is not above zero"),
    ],
)
def test_epochs_that_contradict_themselves_are_refused_with_their_line(tmp_path: Path, line: str, what: str) -> None:
    (tmp_path / "epochs.csv").write_text(EPOCHS + line + "\n")

    with pytest.raises(GantlineError, match=f"epochs.csv:5.*{what}"):
        read_profiles(tmp_path)
