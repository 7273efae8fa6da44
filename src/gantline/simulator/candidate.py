"""One policy as it would decide from an instant on, with its placement rule and its admission limit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gantline.core.columns import Job
from gantline.core.costs import Costs
from gantline.core.errors import RefusedError
from gantline.core.phases import FUTURE
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.assembly.rules import RunRules
from gantline.engine.drivers.futures.case import FutureBounds, case_of
from gantline.engine.drivers.futures.places import FutureAmount, FutureCase
from gantline.engine.drivers.python_keys.read import read_key
from gantline.policies.admission.rules import AdmissionRule, find_admission
from gantline.simulator.from_here import FromHere, private_tables
from gantline.traces.files.placements import GivenPlacement
from gantline.traces.files.policies import policy_of

Known = dict[Any, Any]
"""What candidates of one rollout share."""
AS_IT_IS = object()
"""The memory that the snapshot carries."""
BEFORE_ANY_CAME = object()
"""Under this candidates find the jobs of the snapshot as if none had come yet: to make these is most of what a case costs."""


@dataclass(frozen=True)
class Candidate:
    """A policy with what goes with it; `memory` is what it remembers (None: nothing)."""

    policy: Policy
    name: str = ""
    placement: GivenPlacement | None = None  # None: as the rollout says, else as the run does
    admission: str = "accept-all"
    memory: object = field(default=None, repr=False)


def candidate_of(given: Policy | str | Candidate, memory: object) -> Candidate:
    """A candidate from a policy or its name."""
    if isinstance(given, Candidate):
        return given if given.name else replace(given, name=given.policy.name or type(given.policy).__name__)
    policy = policy_of(given)
    return Candidate(policy, given if isinstance(given, str) else policy.name or type(policy).__name__, memory=memory)


@dataclass(frozen=True)
class Prepared:
    """A candidate at an instant."""

    name: str
    snapshot: Snapshot
    rules: RunRules
    policy: Policy
    admission: AdmissionRule
    load_limit: float  # in GPUs
    about: tuple[Any, ...]  # what candidates share that differ by their admission limit alone; their objects live as long as they do

    @staticmethod
    def of(snapshot: Snapshot, one: Candidate, costs: Costs | None, known: Known) -> Prepared:
        """The candidate as this run would have it; those of one placement rule share what is `known`."""
        placed = one.placement if isinstance(one.placement, str) else id(one.placement)  # rules are alike when they are the same
        if placed not in known:
            known[placed] = RunRules.at(snapshot, one.placement, costs), snapshot.cluster.gpus, one.placement
        rules, gpus, _ = known[placed]
        admission = find_admission(one.admission)
        if admission.has_quota:
            raise RefusedError("quotas belong to the run", where=f"candidate '{one.name}'", fix="use accept-all or load-limit:X")
        policy = rules.policy(one.policy, rules.guard(one.policy))
        remembering = snapshot if one.memory is AS_IT_IS else replace(snapshot, memory=one.memory)
        about = (id(one.policy), id(rules), id(one.memory))
        return Prepared(one.name, remembering, rules, policy, admission, admission.most_gpus(gpus), about)

    def case(self, bounds: FutureBounds, known: Known) -> FutureCase | None:
        """The instant as the counting loop takes it; None: it cannot run this policy, this run or this instant.

        Candidates share what is `known`: their jobs, and the whole case where they differ by their admission limit alone.
        """
        if self.about not in known:
            known[self.about] = self._case(bounds, known)
        case: FutureCase | None = known[self.about]
        if case is None or self.load_limit == bounds.load_limit:
            return case
        amount = case.amount.copy()
        amount[FutureAmount.LOAD_LIMIT] = self.load_limit
        return case._replace(amount=amount)

    def _case(self, bounds: FutureBounds, known: Known) -> FutureCase | None:
        """The key is read from the jobs as if none had come yet."""
        policy = self.policy
        if not isinstance(policy, OrderPolicy):
            return None
        if BEFORE_ANY_CAME not in known:
            instant, tables = private_tables(self.snapshot)
            tables.I[Job.PHASE], tables.I[Job.LOCKED] = FUTURE, 0
            known[BEFORE_ANY_CAME] = instant.jobs.rows, tables
        rows, tables = known[BEFORE_ANY_CAME]
        found = read_key(policy, self.rules.state(tables.copy()), self.rules.guard(policy)).sums
        if found is None:
            return None
        key, numbers = found
        return case_of(self.snapshot, self.rules, policy, key, None if numbers is None else numbers[rows], bounds)

    def from_here(self, held: Sequence[int]) -> FromHere:
        """The instant as the engine takes it; `held` are the positions of jobs that admission has not let in yet."""
        return FromHere(self.snapshot, self.policy, self.rules, self.admission, held if math.isfinite(self.load_limit) else ())
