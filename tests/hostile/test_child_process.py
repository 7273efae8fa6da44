"""What nothing can interrupt runs in a process that can be ended: the parent says where the policy was, and lives on."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from gantline._crash_report import crash_text
from gantline.cli.child_process import is_wanted
from gantline.lab.conformance import check_policy
from gantline.lab.conformance.watched import fence
from gantline.traces.files.policies import load_policy

STUBBORN = """\
from dataclasses import dataclass
from gantline import Policy

@dataclass(frozen=True)
class Stubborn(Policy):
    def decide(self, snapshot):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
"""


def test_a_policy_that_catches_everything_is_ended_with_its_process(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,10\n")
    hurry = "import gantline._alarm as a; a.GRACE = 0.2; import sys; from gantline.cli.main import main; sys.exit(main())"
    # long enough to be inside of its `try` on a busy machine, too: before that it can be interrupted
    budget = ["--budget", "0.5"]
    command = [sys.executable, "-c", hurry, "simulate", "jobs.csv", "--cluster", "1x1", "--policy", "stubborn.py", *budget]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert told.returncode == 1
    assert "could not be interrupted" in told.stderr
    assert "stubborn.py:" in told.stderr


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("os._exit(0)", "the policy ended the process that ran it, with exit code 0"),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("ctypes.string_at(0)", "crashed: Segmentation fault (mine.py, in decide)"),
    ],
)
def test_a_child_that_ends_in_the_middle_is_told(fault: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"import ctypes, os\ndef decide():\n    {fault}\ndecide()\n")
    lines = (
        "import runpy, sys; from gantline.cli.child_process import in_a_child\n"
        "sys.exit(in_a_child(lambda: runpy.run_path('mine.py') and 0))"
    )
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert told in done.stderr.replace("mine.py:3", "mine.py")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of the end of its parent")
def test_a_child_whose_parent_is_killed_ends() -> None:
    lines = "import os, time; from gantline.cli.child_process import in_a_child\n"
    lines += "in_a_child(lambda: print(os.getpid(), flush=True) or time.sleep(3000))"
    with subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE) as running:
        child = os.pidfd_open(int(running.stdout.readline()))
        running.kill()
    assert select.select([child], [], [], 300)[0]
    os.close(child)


def test_commands_that_name_a_policy_file_run_in_a_child() -> None:
    assert is_wanted(["simulate", "jobs.csv", "--policy", "./mine.py:Mine"])
    assert is_wanted(["compare", "jobs.csv", "--policy", "fifo,mine.py"])
    assert is_wanted(["experiment", "study.yaml"])
    assert not is_wanted(["simulate", "jobs.csv", "--policy", "srtf"])


def test_the_last_words_name_the_first_frame_outside_of_the_package() -> None:
    dump = 'Timeout!\nThread 1:\n  File "/x/site-packages/numpy/a.py", line 3 in f\n  File "mine.py", line 12 in decide\n'
    assert crash_text(dump).endswith("(mine.py:12, in decide)")
    assert crash_text("") == ""


def test_the_check_of_a_policy_that_never_answers_ends(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "from dataclasses import dataclass\nfrom gantline import Policy\n\n"
        "@dataclass(frozen=True)\nclass Slow(Policy):\n    def decide(self, snapshot):\n        while True:\n            pass\n"
    )
    received: list[str] = []
    report = check_policy(load_policy(str(tmp_path / "slow.py")), budget=0.02, on_scenario=lambda at, total, name: received.append(name))
    assert received == ["no jobs"]
    assert not report.passed
    assert "its budget of 0.02 s" in {finding.rule: finding.message for finding in report.findings}["in time"]
    assert {finding.rule: finding.result for finding in report.findings}["feasible"] == "unseen"


@pytest.mark.parametrize("word", ["by_key(self)", "needs(self)"])
def test_the_check_of_a_policy_that_never_says_what_it_is_ends(word: str, tmp_path: Path) -> None:
    mark = "    @property\n" if "needs" in word else ""
    key = "    def key(self, snapshot):\n        return snapshot.jobs.arrival\n"
    lines = f"from gantline import OrderPolicy\nclass Mute(OrderPolicy):\n{key}{mark}    def {word}:\n        while True: pass\n"
    (tmp_path / "mute.py").write_text(lines)
    report = check_policy(load_policy(str(tmp_path / "mute.py")), budget=0.5)  # enough for a key on a busy machine
    found = {finding.rule: finding for finding in report.findings}
    assert "policy 'Mute': the policy was interrupted after 0.5 s" in found["in time"].message
    assert {finding.result for rule, finding in found.items() if rule not in ("in time", "answers")} == {"unseen"}


@pytest.mark.parametrize("fault", ["raise SystemExit", "raise GeneratorExit", "return Plan.rank(None)"])
def test_the_check_of_a_policy_that_goes_wrong_is_whole(fault: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        f"from gantline import Plan, Policy\nclass Bad(Policy):\n    def decide(self, snapshot):\n        {fault}\n"
    )
    report = check_policy(load_policy(str(tmp_path / "bad.py")))
    found = {finding.rule: finding for finding in report.findings}
    assert "bad.py:" in found["answers"].message
    assert found["refusals"].result == "unseen" if "Plan" in fault else "bad.py:4" in found["refusals"].message
    assert found["deterministic"].result == "unseen"


def test_reading_the_environment_crosses_the_fence() -> None:
    for read in (lambda: os.environ["PATH"], lambda: os.environ.get("PATH"), lambda: os.getenv("PATH"), lambda: "PATH" in os.environ):
        with fence() as crossed:
            read()
        assert crossed
        assert "reads the environment in <lambda>()" in crossed[0]
