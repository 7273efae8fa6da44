"""From a trace, a cluster, a policy and the options of a run to its engine, with the model of speeds and the estimates that it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gantline.core.arrays import Bools
from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.device_speeds import use_device_speeds
from gantline.engine.assembly.endings import end_by_loss
from gantline.engine.assembly.finders import find
from gantline.engine.assembly.guard import Guard, asked
from gantline.engine.assembly.models import is_from_trace, model_of
from gantline.engine.assembly.promises import check_promises
from gantline.engine.assembly.provided import provided_needs
from gantline.engine.assembly.reservations import only_reserved
from gantline.engine.assembly.rules import RunRules
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.engine import Engine
from gantline.traces.option_estimates import fill_option_estimates
from gantline.traces.trace import Trace

if TYPE_CHECKING:
    from gantline.models.model import PerformanceModel
    from gantline.models.sharing.throughput_table import ThroughputTable


@dataclass(frozen=True)
class Assembled:
    """A run that has not begun."""

    rules: RunRules
    jobs: Trace  # as the run has them: with the sizes that profiles allow, and only the options that are reserved
    engine: Engine
    profiles: object  # measured ones, as the regime or the model of speeds reads them; None: there are none
    ends_early: Bools | None  # per row: whether its loss ends it before its work is done; None: no rule is in force

    @property
    def policy(self) -> Policy:
        return self.engine.policy

    @property
    def tables(self) -> Tables:
        return self.engine.state.tables


def assemble(jobs: Trace, cluster: Cluster, policy: Policy, spec: RunSpec, rules: RunRules, *, imitated: bool = False) -> Assembled:
    """Put a run together. `imitated`: its regime has a loop of its own, which reads reservations from the trace."""
    regime, guard = rules.regime, rules.guard(policy)
    policy = rules.policy(policy, guard)
    profiles = find(spec, "profiles", cluster)
    speeds: ThroughputTable | None = find(spec, "throughputs", cluster)
    model = find(spec, "performance", cluster)
    for_model = None if regime.profiles else profiles
    if for_model is not None:
        from gantline.engine.assembly.goodput import Profiles, check_alone, use_profiles  # few runs have profiles

        if isinstance(for_model, Profiles):
            check_alone(performance=None if is_from_trace(model) else model, throughputs=speeds, scaling=_noise(spec.scaling))
            jobs, model = use_profiles(jobs, cluster, for_model, policy, regime.round)
            for_model = None
    if policy.keeps_reservations and not imitated:
        jobs = only_reserved(jobs, cluster)
    tables = rules.load(jobs, cluster)
    tables.queue_tree = find(spec, "queues", cluster)
    tables.performance = _model(tables, jobs, spec, speeds, model, for_model)
    _check_carried_out(tables.performance, spec)
    if not imitated:
        check_promises(policy, spec, tables.performance)
    _estimate(tables, jobs, policy, rules, guard)
    early = end_by_loss(tables, jobs, find(spec, "end_by", cluster))  # after the estimates, which are of the whole job
    if not imitated:
        tables.performance = use_device_speeds(spec, rules, jobs, tables)
    return Assembled(rules, jobs, rules.engine(rules.state(tables), policy, guard), profiles, early)


def _check_carried_out(model: PerformanceModel | None, spec: RunSpec) -> None:
    """What gangs do otherwise than the scheduler expects is nothing to other executors."""
    if model is not None and model.does_otherwise and spec.executor != "measured":
        what = f"{type(model).__name__} says what gangs do otherwise than expected, which this executor does not carry out"
        raise RefusedError(what, where=f"--executor {spec.executor}", fix="use --executor measured")


def _model(tables: Tables, jobs: Trace, spec: RunSpec, speeds: ThroughputTable | None, given: Any, profiles: object) -> Any:
    """How fast jobs run: as given, as measured, or by the curves that the trace lists; None: by their options."""
    if speeds is not None and not is_from_trace(given):
        raise RefusedError("speeds come from --throughputs and from a model at once", where="--performance", fix="leave one of them out")
    if spec.across_nodes and speeds is None:
        what = "how fast gangs are across nodes is part of a table of throughputs, and none is given"
        raise RefusedError(what, where="--across-nodes", fix="give --throughputs FILE")
    model = model_of(given, jobs, tables.cluster, profiles)
    if speeds is not None:
        from gantline.engine.assembly.throughputs import use_throughputs

        model = use_throughputs(tables, jobs, speeds, across=spec.across_nodes)
    noise = _noise(spec.scaling)
    if noise is None:
        return model
    from gantline.models.learned_curves import LearnedCurves
    from gantline.models.parameter_servers import ServerModel

    if speeds is not None or isinstance(model, ServerModel):
        fix = "leave it out: throughputs and parameter servers have ways of their own"
        raise RefusedError("speeds cannot be learned in this run", where="--scaling", fix=fix)
    return LearnedCurves(model, noise)


def _noise(scaling: str) -> float | None:
    """How far reports of speeds are off, where they are to be learned."""
    if scaling == "listed":
        return None
    from gantline.models.learned_curves import read_scaling

    return read_scaling(scaling)


def _estimate(tables: Tables, jobs: Trace, policy: Policy, rules: RunRules, guard: Guard[Any] | None) -> None:
    """Give the policy the run's estimates, or refuse it where it needs more."""
    needs = asked(policy, guard, lambda: frozenset(policy.needs))
    rules.estimates.provide(policy.name or type(policy).__name__, needs, provided_needs(tables, rules.facts))
    rules.estimates.fill(tables, rules.seed)
    fill_option_estimates(tables, jobs, rules.estimates, rules.seed)
