"""Policies that go wrong in every way we have met: contained, told with the line of their own file, and soon over."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.typed import typed

from gantline.core.errors import RefusedError, UsageError
from gantline.core.memory import check
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.assembly import guard as budget
from gantline.engine.policy_failures import ANSWERED_ONCE, IN_TIME_ONCE, NEVER_ANSWERED, NEVER_IN_TIME, Incident, PolicyFailures
from gantline.simulator.rollout import rollout
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files import python_file
from gantline.traces.files.policies import load_policy

JOBS = [{"job": f"j{k}", "arrival": 5.0 * k, "gpus": 1 + k % 3, "duration": 40.0 + 7 * k} for k in range(8)]
HEAD = """\
import sys, math, numpy as np
from dataclasses import dataclass
from gantline import Assignment, Plan, Policy
from gantline.core.plan import Assignments, Reservation, Refusal

@dataclass(frozen=True)
class Mine(Policy):
    def decide(self, snapshot):
        jobs = snapshot.jobs
"""
LINE = HEAD.count("\n") + 1  # the line that a fault stands in
SHORT, LONG = 0.2, 60.0  # seconds of budget: for what never ends, and for what ends by itself however slow the machine is


def run_with(fault: str, folder: Path, **more: Any) -> Run:
    """Eight jobs under a policy whose decide() is this one statement."""
    (folder / "mine.py").write_text(f"{HEAD}        {fault}\n")
    return simulate(JOBS, "1x4", load_policy(str(folder / "mine.py")), **{"round": 10.0, **more})


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("sys.exit()", "called sys.exit()"),
        ("sys.exit('enough')", "called sys.exit('enough')"),
        ("raise GeneratorExit", "the policy raised GeneratorExit ("),
        ("raise type('Odd', (BaseException,), {})('no')", "the policy raised Odd: no"),
        ("return Plan.rank(jobs.arrival * math.nan)", "a key that is not a number"),
        ("return Plan.assign([Assignment(0, gpus=1.5)])", "gpus is 1.5, not a whole number"),
        ("return Plan.assign([Assignment(0.5)])", "job is 0.5, not a whole number"),
        ("return self.decide(snapshot)", "calls itself without end"),
        ("return jobs.nonsense", "AttributeError"),
        ("return Plan.rank(jobs.arrival, valid_until=math.nan)", "valid_until is nan"),
        ("return Plan.rank(jobs.arrival, valid_until='soon')", "valid_until is 'soon'"),
        ("return Plan.rank(jobs.arrival, memory=['0' * 34_000_000])", "memory is larger than 32 MB"),
        ("return Plan.rank(jobs.arrival, memory=np.zeros(4_300_000))", "memory is larger than 32 MB"),
        ("m = []\n        for _ in range(5000): m = [m]\n        return Plan.rank(jobs.arrival, memory=m)", "nested more than 64 levels"),
        ("m = []; m.append(m); return Plan.rank(jobs.arrival, memory=m)", "nested more than 64 levels"),
        ("return Plan.rank(jobs.arrival, memory={'users': [1, {2}]})", "memory['users'][1] holds a set"),
        ("return Plan.assign(Assignments(np.zeros(200_000), share=1e-9))", "200000 assignments"),
        ("return Plan.assign(Assignments(np.zeros(200_000)))", "assigned twice"),
        ("return Plan.assign([Assignment(job=-3)])", "names job -3"),
        ("return Plan.assign([], reservations=(Reservation(0, 1, 1),) * 200_000)", "200000 reservations"),
        ("return Plan.assign([], refusals=(Refusal(0, 'no'),) * 200_000)", "refused or a node released more than once"),
        ("return Plan.assign([], notes=('look',) * 200_000)", "200000 notes"),
    ],
)
def test_a_bad_answer_is_told_with_the_line_of_the_policy(fault: str, told: str, tmp_path: Path) -> None:
    run = run_with(fault, tmp_path)
    assert told in run.incidents[0]
    named = run.incidents[0].split(f"{tmp_path / 'mine.py'}:")
    assert len(named) == 2
    assert int(named[1].split(")")[0]) in (LINE, LINE + 1, LINE + 2, LINE - 2)  # the statement, or where decide() begins
    assert run.summary["lost_turns"] == NEVER_ANSWERED
    assert run.summary["lost_turns"] == run.summary["decisions"]
    assert "given up" in run.incidents[-1]
    assert run.summary["unfinished"] == len(JOBS)


def test_a_policy_that_answered_once_is_given_more_time(tmp_path: Path) -> None:
    fault = "return Plan.rank(jobs.arrival, memory=1) if snapshot.memory is None else 1 / 0"
    run = run_with(fault, tmp_path)
    assert run.summary["lost_turns"] == ANSWERED_ONCE
    assert f"mine.py:{LINE}" in run.incidents[0]


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "exec('while True:\\n  try:\\n    1/0\\n  except Exception:\\n    pass')",
        "import time; time.sleep(3600)",
    ],
)
def test_an_endless_loop_is_interrupted_and_soon_given_up(loop: str, tmp_path: Path) -> None:
    received: list[Incident] = []
    run = run_with(loop, tmp_path, budget=SHORT, on_lost=received.append)
    assert run.summary["lost_turns"] == NEVER_IN_TIME == len(received)
    assert f"interrupted after {SHORT} s" in received[0].what
    assert f"mine.py:{LINE}" in received[0].what


def test_a_key_that_compiled_code_evaluates_is_given_up_as_soon(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import math\nfrom gantline import OrderPolicy\nclass Mine(OrderPolicy):\n    def key(self, snapshot):\n"
        "        return snapshot.jobs.arrival * math.nan\n"
    )
    run = simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py")), round=10.0)
    assert run.summary["lost_turns"] == NEVER_ANSWERED
    assert "mine.py:4" in run.incidents[0]


def test_a_key_that_was_read_is_bounded_when_it_is_held_against_the_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(
        "from gantline import OrderPolicy\nfrom gantline.core.snapshot import Snapshot\nclass Mine(OrderPolicy):\n"
        "    def key(self, snapshot):\n        while isinstance(snapshot, Snapshot): print('x')\n"
        "        return snapshot.jobs.waiting % 7.0\n"
    )
    run = simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py")), round=10.0, budget=SHORT)
    assert run.summary["lost_turns"] == NEVER_IN_TIME
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("fault", "told"), [("print('x'); sys.exit()", "called sys.exit()"), ("while True: pass", f"interrupted after {SHORT} s")]
)
def test_a_key_is_bounded_from_the_first_time_it_is_read(fault: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "import sys\nfrom gantline import OrderPolicy\nclass Mine(OrderPolicy):\n    def key(self, snapshot):\n        "
    (tmp_path / "mine.py").write_text(head + fault + "\n")
    run = simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py")), round=10.0, budget=SHORT if fault.startswith("while") else LONG)
    assert told in run.incidents[0]
    assert "mine.py:5" in run.incidents[0]
    assert run.summary["unfinished"] == len(JOBS)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("fault", ["while True: pass", "raise SystemExit(3)", "raise KeyError('x')"])
@pytest.mark.parametrize(
    "where", ["by_key(self)", "backfill_depth(self)", "only_starts(self)", "for_regime(self, regime)", "needs(self)", "preempt(self)"]
)
def test_what_a_policy_says_outside_of_its_turns_is_bounded(where: str, fault: str, tmp_path: Path) -> None:
    prefix = "    @property\n" if where.startswith(("needs", "preempt")) else "    # a method\n"
    head = f"from gantline import OrderPolicy\nclass Mine(OrderPolicy):\n{prefix}    def {where}:\n        {fault}\n"
    (tmp_path / "mine.py").write_text(f"{head}    def key(self, snapshot):\n        return snapshot.jobs.arrival\n")
    with pytest.raises(UsageError, match=r"policy 'Mine': the policy .*mine\.py:5\)"):
        simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py")), round=10.0, budget=SHORT if fault.startswith("while") else LONG)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("def linear(self): return {'arrival': 1}", r"'linear' is not asked for: key\(\) is read, .* \(leave it out"),
        ("per_job = True", r"'per_job' is not asked for: key\(\) is asked about all jobs, .* \(leave it out"),
        ("def by_key(self): return 'yes'", r"by_key\(\) is 'yes' \(True or False\)"),
        ("def backfill_depth(self): return 'one'", r"backfill_depth\(\) is 'one' \(a number\)"),
        ("misfit = 'skip'", r"misfit is 'skip' \(a gantline.Misfit\)"),
        ("preempt = 'no'", r"preempt is 'no' \(True or False\)"),
        ("needs = {'remaning'}", r"unknown need 'remaning' \(did you mean 'remaining'"),
    ],
)
def test_what_a_policy_cannot_mean_is_refused(line: str, told: str, tmp_path: Path) -> None:
    head = (
        "from gantline import OrderPolicy\nclass Mine(OrderPolicy):\n    def key(self, snapshot):\n        return snapshot.jobs.arrival\n"
    )
    (tmp_path / "mine.py").write_text(f"{head}    {line}\n")
    with pytest.raises(UsageError, match=f"policy 'Mine': {told}"):
        simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py")), round=10.0)


def test_a_script_that_names_itself_as_a_policy_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"import gantline\ngantline.simulate('day', '8x8', {str(file)!r})\n")
    with pytest.raises(UsageError, match=r"it names itself while it is loaded \(guard that with if __name__"):
        load_policy(str(file))


def test_the_time_that_an_order_holds_is_asked_within_the_budget(tmp_path: Path) -> None:
    head = (
        "from gantline import OrderPolicy\nclass Mine(OrderPolicy):\n    def key(self, snapshot):\n        return snapshot.jobs.arrival\n"
    )
    (tmp_path / "mine.py").write_text(f"{head}    def valid_until(self, snapshot):\n        while True: pass\n")
    run = simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py")), round=10.0, budget=SHORT)
    assert run.summary["lost_turns"] == NEVER_IN_TIME
    assert "mine.py:6" in run.incidents[0]


@pytest.mark.parametrize(
    ("fault", "told"), [("while True: pass", "making Mine takes longer than"), ("sys.exit()", "making Mine calls sys.exit()")]
)
def test_a_policy_is_made_in_bounded_time(fault: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_file, "LOADING", SHORT if fault.startswith("while") else LONG)
    (tmp_path / "mine.py").write_text(
        f"import sys\nfrom gantline import Policy\nclass Mine(Policy):\n    def __init__(self):\n        {fault}\n"
    )
    with pytest.raises(UsageError, match=rf"mine\.py:5: {re.escape(told)}"):
        load_policy(str(tmp_path / "mine.py"))


def test_one_decision_and_a_roll_forward_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(budget, "DEFAULT_BUDGET", SHORT)
    (tmp_path / "mine.py").write_text(f"{HEAD}        print('x')\n        while True: pass\n")
    (tmp_path / "now.json").write_text('{"now": 5, "cluster": "1x4", "jobs": [{"id": "a", "estimate": 10}]}')
    assert typed(f"decide {tmp_path}/now.json --policy {tmp_path}/mine.py -o json") == 4
    streams = capsys.readouterr()
    assert streams.out == ""
    assert f"mine.py:{LINE + 1})" in streams.err
    with pytest.raises(RefusedError, match=rf"policy 'Mine' decides nothing from here on: .*its budget of 0\.2 s .*mine\.py:{LINE + 1}\)"):
        rollout(decode_snapshot(json.loads((tmp_path / "now.json").read_text())), load_policy(str(tmp_path / "mine.py")))


def lose(turns: PolicyFailures, count: int, late: bool = True) -> bool:
    for number in range(count):
        turns.lose(Incident(0.0, number, "late" if late else "wrong"), late)
    return turns.hopeless


def test_an_answer_and_a_mistake_in_time_begin_the_count_of_late_answers_anew() -> None:
    turns = PolicyFailures()
    assert not lose(turns, NEVER_IN_TIME - 1)
    turns.answered()
    assert not lose(turns, IN_TIME_ONCE - 1)
    assert not lose(turns, 1, late=False)
    assert not lose(turns, IN_TIME_ONCE - 1)
    assert lose(turns, 1)


def test_a_policy_that_cannot_be_made_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from gantline import Policy\nclass Mine(Policy):\n    def __init__(self):\n        raise RuntimeError('no')\n"
    )
    with pytest.raises(UsageError, match=r"policy 'Mine': cannot be made: RuntimeError: no \(.*mine.py:4\)"):
        load_policy(str(tmp_path / "mine.py"))


def test_a_file_that_is_never_loaded_is_interrupted_at_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_file, "LOADING", SHORT)
    (tmp_path / "endless.py").write_text("x = 1\nwhile True:\n    x += 1\n")
    with pytest.raises(UsageError, match="loading it takes longer than") as caught:
        load_policy(str(tmp_path / "endless.py"))
    assert "endless.py:" in str(caught.value)


def test_a_policy_of_two_files_is_told_how(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("X = 1")
    (tmp_path / "mine.py").write_text("from beside import X\n")
    with pytest.raises(UsageError, match=rf"No module named 'beside' \(a policy is one file; .*PYTHONPATH={tmp_path}\)"):
        load_policy(str(tmp_path / "mine.py"))


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path) -> None:
    """Also where it is as long and as old as before."""
    file, found = tmp_path / "mine.py", []
    for number in (1, 2):
        file.write_text(f"from gantline import Policy\nclass Mine(Policy):\n    number = {number}\n")
        os.utime(file, (1e9, 1e9))
        found.append(load_policy(str(file)).number)  # type: ignore[attr-defined]
    assert found == [1, 2]
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_policy_prints_does_not_reach_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_with("print('hello'); return Plan.rank(jobs.arrival)", tmp_path)
    streams = capsys.readouterr()
    assert run.summary["unfinished"] == 0
    assert streams.out == ""
    assert "hello" in streams.err


def test_what_a_policy_prints_of_itself_does_not_reach_stdout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "".join(
        f"    def {name}(self):\n        print('{name}')\n        return {said}\n" for name, said in (("by_key", True), ("only_starts", 0))
    )
    needs = "    @property\n    def needs(self):\n        print('needs')\n        return ()\n"
    key = "    def key(self, snapshot):\n        return snapshot.jobs.arrival\n"
    (tmp_path / "mine.py").write_text(f"from gantline import OrderPolicy\nclass Mine(OrderPolicy):\n{lines}{needs}{key}")
    assert simulate(JOBS, "1x4", load_policy(str(tmp_path / "mine.py"))).summary["unfinished"] == 0
    streams = capsys.readouterr()
    assert streams.out == ""
    assert all(name in streams.err for name in ("by_key", "only_starts", "needs"))


def test_memory_of_a_sensible_size_is_no_mistake() -> None:
    check({"levels": [1.0] * 100_000, "deep": [[[{"a": (1, None, True)}]]], "array": json.loads("[1, 2]")})
    with pytest.raises(UsageError, match=r"key 3"):
        check([{3: 1}])
