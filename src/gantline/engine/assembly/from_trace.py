"""From a trace, a cluster, a policy and the options of a run to its engine, with the model of speeds and the estimates that it has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Bools, Floats
from gantline.core.cluster import Cluster
from gantline.core.columns import Job
from gantline.core.errors import RefusedError, TraceError, near
from gantline.core.facts import DeviceSpeeds
from gantline.core.inputs import Submit
from gantline.core.job_json import encode_job
from gantline.core.policy import Policy
from gantline.core.tables import Tables
from gantline.engine.assembly.finders import check_promises, find
from gantline.engine.assembly.guard import Guard, asked
from gantline.engine.assembly.run_rules import RunRules, provided_needs
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.ending import WINDOW, EndingRule
from gantline.engine.engine import Engine
from gantline.engine.submissions import SUBMITTED
from gantline.models.learned_curves import LearnedCurves, read_scaling
from gantline.models.model import PerformanceModel
from gantline.models.parameter_servers import ServerModel
from gantline.models.placement_speeds import VariableDevices
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.traces.option_estimates import fill_option_estimates
from gantline.traces.options import LOSS_HELP, WrittenOption, format_options, losses_of, parse_options
from gantline.traces.performance import is_from_trace, model_of, use_throughputs
from gantline.traces.profiled_sizes import Profiles, check_alone, use_profiles
from gantline.traces.to_tables import load_tables
from gantline.traces.trace import Trace

# --- jobs that end by their loss: how much work each really does, which policies do not see -----------------------------
REPORTS = 100  # of every job, equally far apart in its work
_PROGRESS = np.arange(1, REPORTS + 1) / REPORTS


def end_by_loss(tables: Tables, jobs: Trace, rule: EndingRule) -> Bools | None:
    """Cut the true work of jobs to where the rule ends them; the rows that were cut, or None where no rule is in force."""
    if rule.kind == "never":
        return None
    cells = jobs.texts("loss") if "loss" in jobs.columns else []
    if not any(cells):
        what = f"no job of this trace has a loss curve, so '{rule}' would end none"
        raise RefusedError(what, where="--end-by", fix=f"give the trace a column 'loss': {LOSS_HELP}")
    if rule.kind == "plateau" and rule.window >= REPORTS:
        what = f"a window of {rule.window} reports is never full: a simulated job reports its loss {REPORTS} times"
        raise RefusedError(what, where="--end-by", fix=f"use a window below {REPORTS}, such as {replace(rule, window=WINDOW)}")
    parts = _ends(cells, rule)
    tables.F[Job.WORK, : len(parts)] *= parts
    return np.asarray(parts < 1.0)


def _ends(cells: list[str], rule: EndingRule) -> Floats:
    """After which part of its work each job ends."""
    curves: dict[str, float] = {"": 1.0}
    for cell in cells:
        if cell not in curves:  # many jobs share a curve
            fires = rule.fires(losses_of(cell, _PROGRESS))
            curves[cell] = float(_PROGRESS[int(fires.argmax())]) if fires.any() else 1.0
    return np.array([curves[cell] for cell in cells])


# --- GPUs that a trace keeps for single jobs (`reserved`): the job has this option and no other -------------------------
_CELLS = ("type", "options", "min_gpus", "max_gpus")  # columns that define how a job may run


def reservations(trace: Trace) -> dict[str, tuple[str, int]]:
    """The type and number of GPUs that are kept for a job, by name."""
    if "reserved" not in trace.columns:
        return {}
    some = trace.frame.filter(pl.col("reserved").fill_null("") != "").select("job", "reserved")
    return {name: (kept.partition(":")[0], int(kept.partition(":")[2])) for name, kept in some.iter_rows()}


def only_reserved(trace: Trace, cluster: Cluster) -> Trace:
    """The same jobs, those with a reservation with that option alone."""
    kept = reservations(trace)
    if not kept:
        return trace
    frame = trace.frame
    cells = {name: frame[name].to_list() for name in _CELLS if name in frame.columns} | {"gpus": frame["gpus"].to_list()}
    cells.setdefault("type", [""] * frame.height)
    for row, name in enumerate(frame["job"].to_list()):
        if name in kept:
            kind, gpus = kept[name]
            _check(trace, cluster, row, kind, gpus, {column: values[row] for column, values in cells.items()})
            ways = [way for way in _ways(cells, row) if (way.type, way.gpus) == (kind, gpus)]
            only = {"type": kind, "options": format_options(ways[:1]), "min_gpus": gpus, "max_gpus": gpus, "gpus": gpus}
            for column, values in cells.items():
                values[row] = only.get(column, values[row])
    columns = [pl.Series(name, values, dtype=frame.schema.get(name, pl.String)) for name, values in cells.items()]
    return Trace(frame.with_columns(columns), trace.source, trace.notes)


def _ways(cells: dict[str, list[Any]], row: int) -> tuple[WrittenOption, ...]:
    return parse_options(cells["options"][row] or "") if "options" in cells else ()


def _check(trace: Trace, cluster: Cluster, row: int, kind: str, gpus: int, cell: dict[str, Any]) -> None:
    """Refuse a reservation that the cluster does not have, or that is no option of the job."""
    what, fix = "", "reserve less, or another type"
    listed = {(way.type, way.gpus) for way in parse_options(cell.get("options") or "")}
    asked = not listed and cell["gpus"] == gpus and cell["type"] in (None, "", kind)
    if kind not in cluster.types or cluster.gpus_of(kind) < gpus:
        what = "which the cluster does not have"
    elif not asked and (kind, gpus) not in listed:
        what, fix = "which is no way for it to run", f"reserve the GPUs that it asks for, or list {kind}:{gpus}=SECONDS in 'options'"
    if what:
        text = f"job '{trace.frame['job'][row]}' reserves {gpus} GPUs of '{kind}', {what}"
        raise TraceError(text, file=trace.source, line=row + 2, field="reserved", fix=fix)


# --- devices of different speeds ----------------------------------------------------------------------------------------


def use_device_speeds(spec: RunSpec, rules: RunRules, jobs: Trace, tables: Tables) -> Any:
    """The performance model; an option that would be ignored is refused."""
    speeds = rules.facts.device_speeds
    if speeds is None and spec.locality != 1.0:
        raise RefusedError("a locality penalty without speeds of devices", where="--locality", fix="give --device-speeds FILE.csv")
    classes = classes_of(jobs, speeds)
    if speeds is None:
        return tables.performance
    if tables.performance is not None:
        raise RefusedError("another model of speeds is in use", where="--device-speeds", fix="leave one of them out")
    return VariableDevices(speeds, spec.locality, dict(zip(tables.ids, classes)))


def classes_of(jobs: Trace, speeds: DeviceSpeeds | None) -> list[str]:
    """The class of each job, from the trace's column `speed_class`; empty cells mean the first class of the table."""
    if speeds is None:
        return []
    first = speeds.classes[0]
    named = [text or first for text in jobs.texts("speed_class")] if "speed_class" in jobs.columns else [first] * len(jobs)
    for row, name in enumerate(named):
        if name not in speeds.slowdown:
            what = f"job '{jobs.texts('job')[row]}' has class '{name}', which the table of speeds does not"
            raise RefusedError(what, where="--device-speeds", fix=f"{near(name, speeds.classes)}; it has {', '.join(speeds.classes)}")
    return named


# --- the run ------------------------------------------------------------------------------------------------------------


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
        model = use_throughputs(tables, jobs, speeds, across=spec.across_nodes)
    noise = _noise(spec.scaling)
    if noise is None:
        return model
    if speeds is not None or isinstance(model, ServerModel):
        fix = "leave it out: throughputs and parameter servers have ways of their own"
        raise RefusedError("speeds cannot be learned in this run", where="--scaling", fix=fix)
    return LearnedCurves(model, noise)


def _noise(scaling: str) -> float | None:
    """How far reports of speeds are off, where they are to be learned."""
    if scaling == "listed":
        return None
    return read_scaling(scaling)


def _estimate(tables: Tables, jobs: Trace, policy: Policy, rules: RunRules, guard: Guard[Any] | None) -> None:
    """Give the policy the run's estimates, or refuse it where it needs more."""
    needs = asked(policy, guard, lambda: frozenset(policy.needs))
    rules.estimates.provide(policy.name or type(policy).__name__, needs, provided_needs(tables, rules.facts))
    rules.estimates.fill(tables, rules.seed)
    fill_option_estimates(tables, jobs, rules.estimates, rules.seed)


# --- the jobs of a trace as submissions: a run of these is the run of the trace -----------------------------------------


def submissions(trace: Trace, cluster: Cluster, *, checkpoint: float = 0.0) -> list[Submit]:
    """What would be submitted to this cluster, in order of arrival, with the true amount of work of each job."""
    tables = load_tables(trace, cluster, checkpoint=checkpoint)
    found = []
    for row in range(len(tables.ids)):
        arrival = float(tables.F[Job.ARRIVAL, row])
        job = encode_job(tables, row, arrival, int(tables.I[Job.OPTION_FIRST, row]))
        found.append(Submit(arrival, {key: value for key, value in job.items() if key in SUBMITTED}, float(tables.F[Job.WORK, row])))
    return found
