"""What the options of a run mean on its cluster, and the states and engines that obey them: made here and nowhere else.

A simulation, a run in blocks, a rollout from a snapshot, a live scheduler, a rehearsal and a conformance story differ in where their
tables come from and in what drives them. What the policy sees of the run's costs, prices, bounds and delays is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.columns import HOST_RESOURCES, Job, Option
from gantline.core.errors import RefusedError
from gantline.core.facts import NO_FACTS, Costs, Facts
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.engine.assembly.finders import find, grid_of, stops_of
from gantline.engine.assembly.guard import Guard, asked, bounded_rule, guard_of, settled
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.engine import Engine
from gantline.engine.policy_failures import Incident
from gantline.engine.preemption_grace import StopRules
from gantline.engine.regime import Regime, find_regime
from gantline.engine.state import State
from gantline.models.estimate_chain import Estimates
from gantline.policies.admission.rules import AdmissionRule
from gantline.policies.placement.rules import FIRST_FREE, PlacementRule
from gantline.traces.files.policies import GivenPlacement, load_placement, load_policy, placement_of
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace


# --- what a run provides of a policy's needs ----------------------------------------------------------------------------
def provided_needs(tables: Tables, facts: Facts = NO_FACTS) -> frozenset[str]:
    """Those of `gantline.core.policy.NEEDS` that do not depend on estimates of work."""
    found = {"rates", "deadlines"}
    if np.isfinite(tables.F[Job.DEADLINE]).any():
        found.add("some-deadline")
    if tables.performance is not None:
        found |= {"pairs", "scaling"}
    elif lists_curves(tables):
        found.add("scaling")
    return frozenset(found) | factual_needs(facts)


#: needs that are facts of the run, whatever its jobs are
FACTUAL = frozenset({"carbon", "power", "prices"})


def factual_needs(facts: Facts) -> frozenset[str]:
    """Those of them that the run has."""
    there = {"carbon": facts.grid.carbon is not None, "power": bool(facts.grid.power), "prices": bool(facts.prices)}
    return frozenset(name for name, is_there in there.items() if is_there)


def lists_curves(tables: Tables) -> bool:
    """Whether the options list speeds for other numbers of devices: for one at least, and for all that may change their size."""
    count = tables.I[Job.OPTION_COUNT]
    if count.max(initial=0) < 2:
        return False
    owner = np.repeat(np.arange(len(count)), count)
    entry = np.arange(len(owner)) + np.repeat(tables.I[Job.OPTION_FIRST] - (np.cumsum(count) - count), count)
    gpus = tables.options.I[Option.GPUS][entry]
    sizes = np.unique(np.stack([owner[gpus > 0], gpus[gpus > 0]]), axis=1)[0]
    listed = np.bincount(sizes, minlength=len(count)) > 1
    elastic = tables.I[Job.MIN_GPUS] < tables.I[Job.MAX_GPUS]
    return bool(listed.any() and listed[elastic].all())


# --- rules --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunRules:
    """The options that every decision depends on, as values instead of names."""

    regime: Regime = field(default_factory=Regime)
    placement: PlacementRule = FIRST_FREE
    admission: AdmissionRule = field(default_factory=AdmissionRule)
    estimates: Estimates = field(default_factory=Estimates)
    facts: Facts = NO_FACTS
    seed: int = 0
    budget: float | None = None  # seconds that one decision may take; None: as usual for this policy
    stops: StopRules = field(default_factory=StopRules)

    def __post_init__(self) -> None:
        placement = FIRST_FREE.name if self.placement is FIRST_FREE else self.placement
        if self.facts.placement is not placement:
            object.__setattr__(self, "facts", replace(self.facts, placement=placement))

    @staticmethod
    def of(spec: RunSpec, cluster: Cluster) -> RunRules:
        """What the options mean on this cluster; a name that means nothing is refused."""
        prices, speeds = find(spec, "prices", cluster), find(spec, "device_speeds", cluster)
        stops = stops_of(spec)
        costs, grid = find(spec, "costs", cluster), grid_of(spec, cluster)
        facts = Facts(costs, stops.min_run, spec.latency, prices, grid, speeds, spec.locality, spec.victims)
        regime = find(spec, "regime", cluster).with_round(spec.round)
        placement, admission, estimates = (find(spec, name, cluster) for name in ("placement", "admission", "estimates"))
        return RunRules(regime, placement, admission, estimates, facts, spec.seed, spec.budget, stops)

    @staticmethod
    def at(snapshot: Snapshot, placement: GivenPlacement | None = None, costs: Costs | None = None) -> RunRules:
        """Those of the run that a snapshot is of; `placement` and `costs` are others than its own."""
        rule = placement_of(rule_of_run(snapshot) if placement is None else placement)
        facts = snapshot.facts if costs is None else replace(snapshot.facts, costs=costs)
        return RunRules(find_regime(snapshot.regime).with_round(snapshot.round), rule, facts=facts, seed=snapshot.seed)

    def load(self, trace: Trace, cluster: Cluster) -> Tables:
        """The jobs of a trace as tables."""
        return load_tables(trace, cluster, checkpoint=self.facts.costs.checkpoint, sizes_bind=self.regime.sizes_bind)

    def state(self, tables: Tables, now: float = 0.0, decision: int = 0) -> State:
        """The state of a run over these tables."""
        rule = self._on(tables, self.placement)
        return State(tables, self.regime, rule, self.facts, self.seed, now=now, decision=decision)

    def _on(self, tables: Tables, rule: PlacementRule) -> PlacementRule:
        """The rule as it is on this cluster; one that picks devices is refused where it would have to be ignored."""
        if rule.device_rule is None:
            return rule
        if (tables.options.F[Option.CPUS : Option.CPUS + HOST_RESOURCES] > 0).any():
            what = f"placement '{rule.name}' picks devices and does not count CPUs, memory and storage, which jobs of this run ask for"
            raise RefusedError(what, where="--placement", fix="use another placement, or jobs without cpus, memory and storage")
        if self.stops.min_run > 0 and not rule.sticky:
            what = f"placement '{rule.name}' moves gangs that run, and a minimum run forbids that"
            raise RefusedError(what, where="--min-run", fix="use a sticky placement, such as packed-sticky")
        return replace(rule, device_rule=bounded_rule(rule.device_rule, rule.name, self.budget).on(tables.cluster, self.facts))

    def guard(self, policy: Policy) -> Guard[Any] | None:
        """What bounds the turns of this policy; None: nothing."""
        return guard_of(policy, self.budget)

    def policy(self, policy: Policy, guard: Guard[Any] | None = None) -> Policy:
        """The policy as a run has it; one that assigns is refused beside a rule that makes gangs wait, which only orders can follow."""
        found = settled(policy, self.regime, guard)
        called = found.name or type(found).__name__
        if self.placement.only_parts and not found.shares_devices:
            what = f"placement '{self.placement.name}' gives parts of GPUs, and policy '{called}' gives whole ones"
            raise RefusedError(what, where="--placement", fix=f"--policy sharing --set order={called if found.ranks else 'srtf, las, ...'}")
        if self.placement.may_wait and not found.ranks:
            what = f"placement '{self.placement.name}' may make gangs wait, and policy '{called}' does not rank jobs"
            raise RefusedError(what, where="--placement", fix="use a policy that ranks jobs, or a rule that always chooses")
        return found

    def fit(self, policy: Policy) -> Policy:
        """The policy as a run has it that reads no trace; one that needs facts which this run does not have is refused."""
        found = self.policy(policy)
        needs = frozenset(found.needs) & FACTUAL
        self.estimates.provide(found.name or type(found).__name__, needs, factual_needs(self.facts))
        return found

    def engine(self, state: State, policy: Policy, guard: Guard[Any] | None = None) -> Engine:
        """The engine over a state and a policy that is `settled`; one that is switched to during the run is settled alike."""
        make: Callable[[], Engine] = lambda: Engine(state, policy)  # noqa: E731
        engine = asked(policy, guard, make)
        engine.guard = guard
        if policy.names_devices and self.placement is not FIRST_FREE and not (policy.shares_devices and self.placement.parts):
            what = f"placement '{self.placement.name}' decides nothing: policy '{policy.name}' names the devices of its gangs itself"
            engine.notices.append(Incident(state.now, state.decision, what))
            engine.said_at_start = len(engine.notices)
        engine.preemption_grace.grace, engine.preemption_grace.turn = self.stops.grace, self.stops.turn
        engine.find_rule = lambda name: self._on(state.tables, _for_rankings(load_placement(name)))
        engine.find_policy = lambda use: self.fit(load_policy(use.policy, use.settings))
        return engine


def _for_rankings(rule: PlacementRule) -> PlacementRule:
    """A rule that a ranking names for the gangs that it starts, which are whole."""
    if rule.only_parts:
        raise RefusedError(f"placement '{rule.name}' gives parts of GPUs, and rankings start whole gangs", where="plan")
    return rule


def rule_of_run(snapshot: Snapshot) -> GivenPlacement:
    """As the engine had it, or as a document names it."""
    rule = snapshot.facts.placement
    assert isinstance(rule, str | PlacementRule)
    return rule
