"""Every option of a run stands in one place: Python, the command line, experiment files and hashes agree about it."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
from tests.jobs import job_row

from gantline.cli.options import RunOptions
from gantline.cli.simulate import SingleRunOptions
from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.facts import Costs
from gantline.core.inputs import NodeEvent
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.engine.assembly.finders import FINDERS
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.lab.experiment.experiment import RUN_FIELDS
from gantline.lab.experiment.setting import MANY, Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.policies.placement.rules import find_placement
from gantline.simulator.simulate import simulate

JOBS = [job_row("a"), job_row("b", 2, 50)]


def test_an_option_is_one_line_and_stands_everywhere() -> None:
    assert set(inspect.signature(simulate).parameters) >= set(OPTIONS)
    assert {item.name for item in fields(SingleRunOptions)} >= set(OPTIONS)
    assert {item.name for item in fields(RunOptions)} >= set(MANY) - {"seed"}
    assert set(RUN_FIELDS) | {"seed"} == set(MANY)
    assert {item.name for item in fields(Setting)} >= set(OPTIONS)
    assert set(FINDERS) <= set(OPTIONS)
    for name, known in OPTIONS.items():
        assert f"`{name}`: {known.help}" in (simulate.__doc__ or "")


def test_words_in_python_mean_what_they_mean_on_the_command_line() -> None:
    words = RunSpec(round="5m", min_run="00:01:00", until="1d", seed="7", track="0:1", across_nodes="yes", prices={"v100": 0.5})  # type: ignore[arg-type]
    assert words == RunSpec(round=300.0, min_run=60, until=86400, seed=7, track=(0, 1), across_nodes=True, prices="v100=0.5")
    typed = SingleRunOptions(round="5m", min_run="1m", until="1d", seed="7", track="0:1", across_nodes=True, prices="v100=0.5")
    assert typed.spec() == words


def test_nothing_means_the_default() -> None:
    assert RunSpec(**dict.fromkeys(OPTIONS)) == RunSpec() == SingleRunOptions().spec()


def test_things_may_come_in_place_of_their_names() -> None:
    events = [NodeEvent(10.0, "node0", "down"), NodeEvent(20.0, "node0", "up")]
    things = simulate(JOBS, "1x2", "fifo", placement=find_placement("consolidated"), costs=Costs(start=5.0), node_events=iter(events))
    names = simulate(JOBS, "1x2", "fifo", spec=RunSpec(placement="consolidated", costs="start=5"), node_events=events)
    assert things.summary["log_hash"] == names.summary["log_hash"]


@dataclass(frozen=True)
class Newest(OrderPolicy):
    """The last one first."""

    weight: float = 1.0

    def key(self, snapshot: Snapshot) -> Floats:
        return -self.weight * snapshot.jobs.arrival


def test_a_policy_is_given_by_itself_by_its_class_or_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from tests.engine.assembly.test_spec import Newest\nclass Mine(Newest): pass\n")
    runs = [simulate(JOBS, "1x2", given) for given in (Newest(), Newest, f"{tmp_path / 'mine.py'}:Mine")]
    assert len({run.summary["log_hash"] for run in runs}) == 1
    assert simulate(JOBS, "1x2", Newest, settings={"weight": "2"}).summary["settings"] == {"weight": 2.0}
    with pytest.raises(UsageError, match=r"write Newest\(\.\.\.\)"):
        simulate(JOBS, "1x2", Newest(), settings={"weight": 2.0})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((JOBS, "1x2", None), "None is no policy"),
        ((JOBS, "1x2", 3), "3 is no policy"),
        ((JOBS, None, "fifo"), "no cluster is given"),
        ((JOBS, 4, "fifo"), "4 is no cluster"),
        ((None, "1x2", "fifo"), "None is no trace"),
    ],
)
def test_a_thing_of_the_wrong_kind_is_told(given: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        simulate(*given)


def test_a_run_says_what_it_is_in_a_line() -> None:
    run = simulate(JOBS, "1x2", "fifo")
    assert repr(run).startswith(f"<Run of fifo on 1x2: {len(JOBS)} of {len(JOBS)} jobs completed, mean JCT ")
    assert repr(run).replace("<", "&lt;").replace(">", "&gt;") in run._repr_html_()
    assert "mean JCT" not in repr(simulate(JOBS, "1x2", "fifo", until=1.0))


def test_options_given_come_before_those_gathered() -> None:
    gathered = RunSpec(until=10, round=5)
    spec = RunSpec.of({"until": "20s"}, gathered)
    assert (spec.until, spec.round) == (20.0, 5.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"plcement": "random"}, r"no option 'plcement' \(did you mean 'placement'"),
        ({"round": "soon"}, "round: 'soon' is not a time"),
        ({"round": "0"}, "round: '0' is not a time above zero"),
        ({"round": math.inf}, "round: inf never ends"),
        ({"min_run": -1}, "min_run: -1 is not a time"),
        ({"until": math.nan}, "until: nan is not a time"),
        ({"seed": 1.5}, "seed: 1.5 is not a whole number"),
        ({"track": "3"}, "track: '3' is not a range of jobs"),
        ({"track": (3, -1)}, "is not a range of jobs"),
        ({"across_nodes": "maybe"}, "neither true nor false"),
        ({"placement": ["random"]}, r"placement: \['random'\] is not a text"),
        ({"node_events": [{"time": 3}]}, "node_events: {'time': 3} is out of place"),
    ],
)
def test_a_mistake_names_its_option(given: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulate(JOBS, "1x2", "fifo", **given)


def test_a_setting_holds_names_and_not_things() -> None:
    with pytest.raises(UsageError, match="placement: must be a name"):
        Setting(TraceSource(generator="day"), "1x1", "fifo", placement=find_placement("random"))


def test_a_file_is_known_by_its_option(tmp_path: Path) -> None:
    source = TraceSource(generator="day")
    assert Setting(source, "1x1", "fifo", prices=tmp_path / "p.csv").named_files() == {"prices": str(tmp_path / "p.csv")}  # type: ignore[arg-type]
    assert Setting(source, "1x1", "fifo", prices="v100=3").named_files() == {}
