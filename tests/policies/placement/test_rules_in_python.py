"""Placement rules of users: from files and from Python, on every path, and what becomes of their mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.engine.assigning import watched
from tests.jobs import job_row

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.inputs import Submit
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.engine.assembly.run_rules import RunRules
from gantline.policies.order import ShortestRemainingTimeFirst
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.simulator.roll_forward import carry_out
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.policies import from_anywhere, load_placement, placement_of
from gantline.traces.trace import Trace

SIZES = (1, 3, 2, 4, 6)
TRACE = Trace.from_records([job_row(f"j{k}", SIZES[k % 5], 150.0 + 31.0 * (k % 7), at=20.0 * k) for k in range(20)])


class Last(DeviceRule):
    """The last free devices."""

    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return sorted(free.devices)[-gang.gpus :]


def held(run: Run) -> Any:
    return run.allocations.select("job", "start", "end", "devices").sort("start", "job").rows()


def test_a_rule_says_which_devices_and_never_whether() -> None:
    ours, plain = simulate(TRACE, "3x4", "fifo", placement=Last()), simulate(TRACE, "3x4", "fifo")
    assert str(held(ours)[0][3]).strip("[]") == "11"
    assert [row[:3] for row in held(ours)] == [row[:3] for row in held(plain)]
    assert held(ours) != held(plain)


def test_a_file_holds_the_rule(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from gantline import DeviceRule\n\n\nclass Last(DeviceRule):\n"
        "    def choose(self, gang, free):\n        return sorted(free.devices)[-gang.gpus:]\n"
    )
    ours = simulate(TRACE, "3x4", "srtf", placement=f"{file}:Last")
    assert held(ours) == held(simulate(TRACE, "3x4", "srtf", placement=Last())) == held(simulate(TRACE, "3x4", "srtf", placement=str(file)))
    assert ours.summary["placement"] == f"{file}:Last"
    with pytest.raises(NotFoundError, match=r"no placement rule 'Lost' .*Last"):
        load_placement(f"{file}:Lost")
    with pytest.raises(NotFoundError, match="check the path given as --placement"):
        load_placement(str(tmp_path / "none.py:Last"))


def test_a_file_without_a_rule_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("LIMIT = 3\n")
    with pytest.raises(UsageError, match="holds no placement rule"):
        load_placement(str(file))
    with pytest.raises(UsageError, match="'LIMIT' is a int"):
        load_placement(f"{file}:LIMIT")
    wrong: Any = 3
    with pytest.raises(UsageError, match="3 is no placement rule"):
        placement_of(wrong)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("free.devices[:1] * gang.gpus", "chose device 0 twice"),
        ("free.devices[: gang.gpus - 1]", "chose 1 devices for a gang of 2"),
        ("range(90, 90 + gang.gpus)", "chose device 90, which is not free for it"),
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("None", "chose nothing"),
        ("3", "raised TypeError"),
        ("exit(3)", "raised SystemExit"),
    ],
)
@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
def test_a_mistake_costs_the_decision_and_is_told_with_the_job(answer: str, told: str, executor: str) -> None:
    class Wrong(DeviceRule):
        def choose(self, gang: GangRequest, free: FreeDevices) -> Any:
            return eval(answer, {"gang": gang, "free": free, "exit": __import__("sys").exit})

    run = simulate([job_row("a", 2, 10.0)], "2x2", "fifo", placement=Wrong(), executor=executor)
    assert run.summary["completed"] == 1
    (what,) = [str(one) for one in run.incidents]
    assert "decision 1: placement 'Wrong', job 'a': " + told in what


def test_jobs_with_cpus_are_refused_where_a_rule_picks_devices() -> None:
    cluster = parse_cluster("1x4/8c")
    rules = RunRules(placement=placement_of("packed-sticky"))
    engine = rules.engine(rules.state(Tables.empty(cluster)), Policy())
    job = {"id": "a", "gpus": 1, "options": [{"type": "gpu", "gpus": 1, "cpus": 2.0}]}
    with pytest.raises(RefusedError, match="does not count the CPUs, memory or storage of job 'a'"):
        engine.apply(Submit(0.0, job))


def test_models_that_suffer_are_kept_together_however_jobs_come() -> None:
    """The limit of the run counts for submitted jobs too."""
    jobs = [job_row(f"{model}{k}", 3, at=5.0 * k, model=model) for k, model in enumerate(["alexnet", "vgg16"] * 4)]
    first = [job_row("first", 1, 1.0)]
    ours = simulate([*first, *jobs], "4x4", "fifo", placement="skew:0.7")
    inputs = [Submit(one["arrival"], {"id": one["job"], "gpus": 3, "model": one["model"], "estimate": 100.0}, 100.0) for one in jobs]
    theirs = simulate(first, "4x4", "fifo", placement="skew:0.7", inputs=inputs)
    assert held(ours) == held(theirs)


class Doubled(DeviceRule):
    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return [free.devices[0]] * gang.gpus


def test_what_a_plan_would_do_is_not_told_by_a_rule_that_fails() -> None:
    def look(snapshot: Snapshot) -> None:
        plan = Plan.rank([0.0])
        devices.append([one.devices for one in carry_out(snapshot, plan, Last())])
        with pytest.raises(RefusedError, match="job 'a': chose device 0 twice"):
            carry_out(snapshot, plan, Doubled())

    devices: list[Any] = []
    run = simulate([job_row("a", 2, 9.0)], "2x2", watched(ShortestRemainingTimeFirst, look))
    assert devices == [[(2, 3)]]
    assert not run.incidents


def test_a_service_finds_the_file_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_anywhere("mine.py:Last") == f"{tmp_path}/mine.py:Last"
    assert from_anywhere("skew:0.3") == "skew:0.3"
