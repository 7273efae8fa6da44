"""The wall-clock bound of a decision: a late answer does not count, and the error says by how much."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from gantline._alarm import TimeOverError, paused, with_alarm_anywhere
from gantline.engine.assembly.guard import OverBudgetError, TimeBound


def busy(seconds: float) -> str:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
    return "done"


def test_an_answer_in_time_passes() -> None:
    assert TimeBound(5.0)(lambda: "plan") == "plan"


def test_a_decision_that_hangs_is_interrupted() -> None:
    began = time.perf_counter()
    with pytest.raises(OverBudgetError, match=r"interrupted after 0\.05 s, all of its budget"):
        TimeBound(0.05)(lambda: busy(30.0))
    assert time.perf_counter() - began < 30.0


def test_in_another_thread_the_time_is_measured_afterwards() -> None:
    caught: list[str] = []

    def decide() -> None:
        try:
            TimeBound(0.01)(lambda: busy(0.1))
        except OverBudgetError as error:
            caught.append(str(error))

    thread = threading.Thread(target=decide)
    thread.start()
    thread.join()
    assert len(caught) == 1
    assert "more than its budget of 0.01 s" in caught[0]


def compiling(seconds: float) -> str:
    with paused():
        return busy(seconds)


@pytest.mark.parametrize("in_main_thread", [True, False])
def test_the_compilation_of_a_kernel_is_not_counted_against_a_decision(in_main_thread: bool) -> None:
    answers: list[str] = []

    def decide() -> None:
        answers.append(TimeBound(0.2)(lambda: compiling(0.4)))
        with TimeBound(0.2).series() as guard:
            answers.append(guard(lambda: compiling(0.4)))

    if in_main_thread:
        decide()
    else:
        thread = threading.Thread(target=decide)
        thread.start()
        thread.join()
    assert answers == ["done", "done"]


def test_a_decision_that_hangs_after_a_compilation_is_interrupted() -> None:
    with pytest.raises(OverBudgetError, match="interrupted"):
        TimeBound(0.2)(lambda: compiling(0.3) and busy(30.0))


def test_an_alarm_that_was_set_before_goes_on() -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda signum, frame: rung.append(signum))
    left = signal.setitimer(signal.ITIMER_REAL, 600.0)[0]
    try:
        TimeBound(5.0)(lambda: None)
        assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 600.0
        signal.raise_signal(signal.SIGALRM)
        assert rung == [signal.SIGALRM]
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, before)


def test_an_error_of_the_policy_stays_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        TimeBound(5.0)(lambda: 1 / 0)


def test_one_alarm_watches_over_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has the whole time; one that hangs is interrupted, and the next is asked as if nothing had been."""
    now = 0.0

    def takes(seconds: float) -> str:  # on a clock of its own: how busy the machine is does not count
        nonlocal now
        now += seconds
        signal.raise_signal(signal.SIGALRM)
        return "done"

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    before = signal.getsignal(signal.SIGALRM)
    with TimeBound(60.0).series() as guard:
        assert [guard(lambda: takes(25.0)) for _ in range(5)] == ["done"] * 5
        with pytest.raises(OverBudgetError, match=r"interrupted after 60 s, all of its budget"):
            guard(lambda: takes(60.0))
        assert TimeBound(5.0)(lambda: "another alarm in between") == "another alarm in between"
        assert 0.0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 6.0  # the one for many calls goes on
        with pytest.raises(OverBudgetError):
            guard(lambda: takes(60.0))
        assert guard(lambda: "plan") == "plan"
    assert signal.getsignal(signal.SIGALRM) is before


def test_the_alarm_for_many_calls_rings_by_itself() -> None:
    with TimeBound(0.05).series() as guard, pytest.raises(OverBudgetError, match=r"interrupted after 0\.05 s"):
        guard(lambda: busy(30.0))


AFTERWARDS = """
import sys, threading
from gantline._alarm import with_alarm_anywhere

thread = threading.Thread(target=lambda: with_alarm_anywhere(lambda: None, 60.0))
thread.start()
thread.join()
sys.setprofile(lambda *_: None)
(lambda: None)()
"""


def test_a_bounded_call_in_a_thread_leaves_no_trace_in_the_interpreter() -> None:
    """A flag left behind makes every profiled call spin for ever (CPython 3.11)."""
    assert subprocess.run([sys.executable, "-c", AFTERWARDS], timeout=120).returncode == 0


def test_a_call_that_hangs_in_a_thread_is_interrupted_and_the_thread_goes_on() -> None:
    found: list[str] = []

    def decide() -> None:
        try:
            with_alarm_anywhere(lambda: busy(60.0), 0.05)
        except TimeOverError:
            found.append(busy(0.1))

    thread = threading.Thread(target=decide)
    thread.start()
    thread.join()
    assert found == ["done"]
