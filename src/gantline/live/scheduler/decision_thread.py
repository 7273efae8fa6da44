"""Decisions in a thread of their own, while the loop goes on answering: how long each took, and what becomes of a late one.

A policy that is over its budget loses its turn, and the last valid plan stands. Its thread cannot be ended: it is left alone, its answer is
never looked at, and the next decision is made in another one. That a decision was late is no function of its inputs, so it is written
into the journal; folding the journal again lets the same decisions be late.
"""

from __future__ import annotations

import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from gantline.core.cluster import Cluster
from gantline.core.inputs import Submit
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.policy_failures import OverBudgetError

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: the upper bounds of the buckets of `DecisionThread.buckets`; one more is for all that took longer."""
Call = Callable[[], Plan]
_SHARE = 0.001  # seconds after which a policy that thinks in Python lets the scheduler's thread go on; usually 5 ms


class DecisionThread:
    """Makes decisions in a thread of its own, one at a time; `taken` receives the seconds that each took."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.decisions = self.overruns = 0
        self.seconds = self.last = 0.0
        self._questions: SimpleQueue[tuple[Call, Future[Plan]] | None] | None = None

    def here(self, call: Call) -> Plan:
        """The answer, in this thread."""
        began = time.perf_counter()
        try:
            return call()
        finally:
            self._took(time.perf_counter() - began)

    def in_thread(self, call: Call, budget: float, serve: Callable[[Callable[[], bool]], None], ring: Callable[[], None]) -> Plan:
        """The answer from the other thread; `serve` passes the time. OverBudgetError: it did not come in time, and is not waited for."""
        if self._questions is None:
            self._questions = SimpleQueue()
            sys.setswitchinterval(min(_SHARE, sys.getswitchinterval()))
            threading.Thread(target=_answer, args=(self._questions, self.here), name="gantline-policy", daemon=True).start()
        answer: Future[Plan] = Future()
        answer.add_done_callback(lambda _: ring())
        late = threading.Timer(budget, ring) if budget else None
        end = time.monotonic() + budget if budget else float("inf")
        if late is not None:
            late.daemon = True
            late.start()
        self._questions.put((call, answer))
        serve(lambda: not answer.done() and time.monotonic() < end)
        if late is not None:
            late.cancel()
        if not answer.done():
            self.overruns += 1
            self.close()  # its answer is too late; the next question goes to another thread
            raise OverBudgetError(f"the decision took more than {budget:g} s", where="--budget", fix="give it more, or use another policy")
        return answer.result()

    def close(self) -> None:
        """Give the present thread up: it gets no more questions."""
        if self._questions is not None:
            self._questions.put(None)
            self._questions = None

    def counters(self) -> dict[str, float]:
        """Its counters for the view."""
        fields = {"decisions": self.decisions, "decision_seconds": self.seconds, "last_decision_seconds": self.last}
        return {**fields, "decision_overruns": self.overruns}

    def _took(self, seconds: float) -> None:
        self.decisions += 1
        self.seconds += seconds
        self.last = seconds
        self.buckets[bisect_left(BOUNDS, seconds)] += 1


def _answer(questions: SimpleQueue[Any], here: Callable[[Call], Plan]) -> None:
    while (asked := questions.get()) is not None:
        call, answer = asked
        try:
            answer.set_result(here(call))
        except BaseException as error:  # it is raised where the answer is looked at
            answer.set_exception(error)


# Warms a policy up: it serves a few made-up jobs on virtual time before it decides in earnest.
#
# Kernels that were never used on this machine are compiled when they are first called, which may take a minute.
# Better here, in the thread of the request for the policy, than in the scheduler's, where all requests would wait.

_WORK = 60.0  # seconds
_END = 3600.0
RULES = RunRules()


def rehearse(policy: Policy, cluster: Cluster, rules: RunRules = RULES) -> list[str]:
    """Serve three jobs under the rules of the run; the error comes back as text."""
    most = max((node.gpus for node in cluster.nodes), default=1)
    sizes = [min(size, most) for size in (2, 1, 3)] if most else []
    engine = rules.engine(rules.state(Tables.empty(cluster)), rules.policy(policy))
    jobs = [Submit(float(k), {"id": str(k), "gpus": size, "estimate": _WORK}, work=_WORK) for k, size in enumerate(sizes)]
    Simulation(engine, until=_END, node_events=tuple(jobs), driver=Acknowledged(engine)).run()
    return [str(one) for one in engine.incidents]
