"""The rules, and the scenarios in which they are checked."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from gantline.core.errors import GantlineError
from gantline.core.plan import Plan
from gantline.core.policy import OrderPolicy, Policy, build
from gantline.core.rng import stream
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.assembly.guard import DEFAULT_BUDGET, Guard, guard_of
from gantline.engine.policy_failures import OverBudgetError, describe_error
from gantline.lab.conformance.report import Breach, ConformanceReport
from gantline.lab.conformance.scenarios import CARBON, CARBON_WRITTEN, Scenario, ask_in_vain, run_faulty_scenario, scenarios
from gantline.lab.conformance.watched import Watched
from gantline.policies.registry import make_policy
from gantline.simulator.roll_forward import carry_out
from gantline.simulator.run import Run
from gantline.simulator.simulate import key_form, simulate

_ENDED = {"completed", "rejected", "failed", "cancelled"}
_FAULTY_SCENARIOS = (0, 1)  # seeds
_FAULTY_CLOSELY = 4  # such a scenario has hundreds of decisions, most of them while some gang starts or stops
LIMIT = 600.0
"""CPU seconds for the whole suite; a policy that sleeps is late soon enough."""
_LATE = "its budget of"
_RULES = {
    "in time": "no decision takes longer than it may, nor does the whole",
    "answers": "gives a valid plan in every scenario: no jobs, one job, gangs, failures, late decisions",
    "ends": "every job ends",
    "deterministic": "the same scenario twice gives the same plans and the same run",
    "memory only": "a policy rebuilt from its parameters and the stored memory decides the same, after every decision",
    "memory": "what it remembers is plain and survives JSON",
    "input": "leaves snapshot and memory as they are",
    "purity": "reads no clock, draws no unseeded randomness, does no I/O",
    "feasible": "a job that is assigned devices can get them",
    "ranges": "a job that names a range holds no less and no more than it says",
    "valid_until": "skipping rounds until then gives the same run as stepping through them",
    "compiled key": "the key as compiled code evaluates it and key(), asked at every decision, give the same run",
    "two clocks": "through orders and reports without delay it gives the same run as on virtual time",
    "ties": "among equal jobs the earlier one starts first",
    "faults": "every job ends although messages are late, lost and duplicated and machines fail",
    "refusals": "keeps answering while every grant is refused",
}


@dataclass
class _Case:
    """The state of the suite for one policy."""

    policy: Policy
    performance: Any = None
    seconds: float = DEFAULT_BUDGET  # on the clock, for one decision
    answers: bool = False  # whether it gave a valid plan in any scenario
    broken: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def run(self, scenario: Scenario, policy: Policy | None = None, **more: Any) -> Run:
        options = {"carbon": CARBON, **scenario.options, **more}
        chosen = copy.deepcopy(self.policy) if policy is None else policy
        return simulate(scenario.trace, scenario.cluster, chosen, performance=self.performance, **{"budget": self.budget, **options})

    def watch(self, scenario: Scenario, **more: object) -> tuple[Watched, Run]:
        """A run of which only the plans are recorded."""
        watched = Watched.over(self.policy, closely=0)
        return watched, self.run(scenario, watched, **more)

    @property
    def budget(self) -> float | None:
        """Seconds on the clock for one decision. How long ours take is known, but not how busy the machine is that compiles them."""
        return None if type(self.policy).__module__.startswith("gantline.") else self.seconds

    @property
    def same_when_watched(self) -> bool:
        """Whether a run is the same with the policy and with one that merely forwards its answers."""
        kind = type(self.policy)
        plain = (kind.only_starts, kind.for_regime) == (Policy.only_starts, Policy.for_regime)
        return plain and not issubclass(kind, OrderPolicy)

    @property
    def late(self) -> bool:
        """Whether a decision took longer than it may; the next ones would as well."""
        return "in time" in self.broken

    def breach(self, rule: str, message: str) -> None:
        self.broken.setdefault(rule, message)
        if _LATE in message:
            self.broken.setdefault("in time", message)

    def bounded(self, call: Callable[[], Any]) -> Any:
        """Call the policy within its budget, with its output kept off stdout."""
        guard: Guard[Any] | None = guard_of(self.policy, self.budget)
        return call() if guard is None else guard(call)


def check_policy(
    policy: Policy | type[Policy] | str,
    settings: Mapping[str, object] | None = None,
    *,
    performance: object = None,
    limit: float = LIMIT,
    budget: float = DEFAULT_BUDGET,
    on_scenario: Callable[[int, int, str], None] | None = None,
) -> ConformanceReport:
    """Put a policy (an object, a class or a name) through all rules; `performance` is a model for policies that need one.

    After `limit` CPU seconds no further scenario is begun, nor after a decision that took longer than `budget` seconds on the clock;
    `on_scenario` is called as each begins.
    """
    if isinstance(policy, str):
        policy = make_policy(policy, dict(settings or {}))
    elif isinstance(policy, type):
        policy = build(policy, dict(settings or {}))
    case = _Case(policy, performance, budget)
    runs: list[tuple[str, Callable[[], None]]] = [("no jobs", partial(_answer_without_jobs, case))]
    runs += [(scenario.name, partial(_run_scenario, case, scenario)) for scenario in scenarios()]
    runs += [("a faulty world", partial(_bear_faults, case)), ("equal jobs", partial(_break_ties, case))]
    runs.append(("every grant refused", partial(_refuse, case)))
    end = time.process_time() + limit
    for number, (name, run) in enumerate(runs):
        if case.late or time.process_time() > end:
            case.breach("in time", f"{len(runs) - number} of {len(runs)} scenarios were not run, from '{name}' on")
            break
        if on_scenario is not None:
            on_scenario(number, len(runs), name)
        run()
    if not case.late:
        with suppress(GantlineError):
            case.notes["compiled key"] = key_form(case.policy)
    return ConformanceReport(policy.name or type(policy).__name__, tuple(_finding(case, rule, meaning) for rule, meaning in _RULES.items()))


def _finding(case: _Case, rule: str, meaning: str) -> Breach:
    if rule in case.broken:
        return Breach(rule, False, case.broken[rule])
    if not case.answers and rule != "in time":
        return Breach(rule, False, "it never gave a valid plan on which this rule could be checked", seen=False)
    return Breach(rule, True, case.notes.get(rule, meaning))


def _refuse(case: _Case) -> None:
    """Keep asking while nothing is granted."""
    try:
        message = case.bounded(lambda: ask_in_vain(copy.deepcopy(case.policy)))
    except OverBudgetError as error:
        message = describe_error(case.policy, error)
    if message:
        case.breach("refusals", message)


def _answer_without_jobs(case: _Case) -> None:
    snapshot = decode_snapshot({"cluster": "2x4", "now": 5.0, "round": 60.0, "carbon": CARBON_WRITTEN}, case.performance)
    try:
        plan = case.bounded(lambda: copy.deepcopy(case.policy).decide(snapshot))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        case.breach("answers", f"without jobs: {describe_error(case.policy, error)}")
        return
    if not isinstance(plan, Plan):
        case.breach("answers", f"without jobs it answers with a {type(plan).__name__}")


def _run_scenario(case: _Case, scenario: Scenario) -> None:
    """One scenario several times: watched, watched from afar, as it is, through every round, through orders and reports."""
    first = Watched.over(case.policy)
    slow = []
    try:
        run = plain = case.run(scenario, first)
        for rule, message in first.broken.items():
            case.breach(rule, f"in the scenario '{scenario.name}', {message}")
        if run.incidents:
            case.breach("answers", f"in the scenario '{scenario.name}': {run.incidents[0]}")
        if run.summary["lost_turns"] == run.summary["decisions"]:  # nothing that could be compared
            return
        if case.same_when_watched:  # equal plans through orders and reports settle two rules at once
            second, again = case.watch(scenario, executor="acknowledged")
        if not case.same_when_watched or not _same((first, run), (second, again)):
            second, again = case.watch(scenario)
            plain = again if case.same_when_watched else case.run(scenario)
            slow.append(("two clocks", case.run(scenario, executor="acknowledged")))
        if scenario.skips:
            slow.append(("valid_until", case.run(scenario, step_all=True)))
        if plain.summary["loop"] in ("records", "tables"):
            slow.append(("compiled key", case.run(scenario, record=True)))
    except GantlineError as error:
        case.breach("answers", f"in the scenario '{scenario.name}': {error}")
        return
    case.answers = True
    if not _same((first, run), (second, again)):
        case.breach("deterministic", f"the scenario '{scenario.name}' went differently the second time")
    left = plain.jobs.filter(~plain.jobs["state"].is_in(list(_ENDED)))
    if left.height:
        names = ", ".join(left["job"].to_list()[:3])
        case.breach("ends", f"{left.height} jobs of the scenario '{scenario.name}' never end: {names}")
    if outside := _outside_its_range(scenario, plain):
        case.breach("ranges", f"in the scenario '{scenario.name}', {outside}")
    for rule, other in slow:
        if other.summary["log_hash"] != plain.summary["log_hash"]:
            case.breach(rule, f"the scenario '{scenario.name}' {_difference(plain, other)}")


def _outside_its_range(scenario: Scenario, run: Run) -> str:
    """The first time that a job which names a range holds less or more than it says; empty: never."""
    ranges = {job["job"]: (job["min_gpus"], job["max_gpus"]) for job in scenario.jobs if "min_gpus" in job}
    for span in run.allocations.iter_rows(named=True):
        least, most = ranges.get(span["job"], (0, math.inf))
        if not least <= span["gpus"] <= most:
            return f"'{span['job']}' holds {span['gpus']} GPUs and may have {least} to {most}"
    return ""


def _same(one: tuple[Watched, Run], two: tuple[Watched, Run]) -> bool:
    """Whether two runs of a scenario agree, plan by plan. Orders and reports end with the last job, without an empty turn."""
    alike = all(ours == theirs for ours, theirs in zip(one[0].plans, two[0].plans))
    return alike and abs(len(one[0].plans) - len(two[0].plans)) <= 1 and one[1].summary["log_hash"] == two[1].summary["log_hash"]


def _bear_faults(case: _Case) -> None:
    """Late, lost and duplicated messages and failing machines: every job still ends."""
    for seed in _FAULTY_SCENARIOS:
        watched = Watched.over(case.policy, closely=_FAULTY_CLOSELY)
        ending = run_faulty_scenario(watched, seed, case.performance, case.budget)
        for rule, message in watched.broken.items():
            case.breach(rule, f"in a faulty world, {message}")
        if ending.incidents:
            case.breach("answers", f"in a faulty world: {ending.incidents[0]}")
        if ending.unfinished:
            case.breach("faults", f"{len(ending.unfinished)} jobs never end, among them {ending.unfinished[0]}")


def _difference(ours: Run, theirs: Run) -> str:
    for a, b in zip(ours.allocations.iter_rows(named=True), theirs.allocations.iter_rows(named=True)):
        if a != b:
            fast, slow = (f"'{span['job']}' holds {span['devices']} from {span['start']:g} to {span['end']:g} s" for span in (a, b))
            return f"parts: {fast}; the other way, {slow}"
    return f"has {ours.allocations.height} intervals, the other way {theirs.allocations.height}"


def _break_ties(case: _Case) -> None:
    """Six equal jobs of two GPUs, room for four: those that start are the first ones."""
    jobs = [{"id": f"equal-{k}", "gpus": 2, "arrival": 1.0, "estimate": 100.0} for k in range(6)]
    even = {"step": 60.0, "values": [100.0]}  # on a grid that changes, a later start may be the better one
    instant = decode_snapshot({"cluster": "2x4", "now": 60.0, "round": 60.0, "jobs": jobs, "carbon": even}, case.performance)
    drawn: list[str] = []

    def watched_stream(seed: int, decision: int, name: str) -> Any:
        drawn.append(name)
        return stream(seed, decision, name)

    try:
        with patch("gantline.core.snapshot.stream", watched_stream):
            plan = case.bounded(lambda: copy.deepcopy(case.policy).decide(instant))
        started = [outcome.act == "starts" for outcome in carry_out(instant, plan)]
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        case.breach("answers", f"with equal jobs: {describe_error(case.policy, error)}")
        return
    if drawn:
        case.notes["ties"] = "draws lots by snapshot.rng"
    elif started != sorted(started, reverse=True):
        late = [f"equal-{k}" for k, runs in enumerate(started) if runs]
        case.breach("ties", f"of six equal jobs {', '.join(late)} start")
