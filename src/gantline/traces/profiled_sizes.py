"""Measured profiles on the engine: the sizes that jobs may have follow from them, and how fast they go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, TraceError
from gantline.core.policy import Policy
from gantline.models.goodput.measured import Application, Pipeline
from gantline.models.goodput.measured import Profiles as Profiles
from gantline.models.goodput.online import OnlineGoodput, OnlineJob
from gantline.policies.node_classes import node_classes
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.trace import Trace

_COLUMNS = ("app", "model", "kind", "type", "stages", "batch_size", "min_gpus", "max_gpus", "reserved")
_FIXED = ("rigid", "strong-scaling")  # kinds of jobs whose batch stays


class _Sizes(NamedTuple):
    """How a job may run: its listed options, and the range of devices within which it may be sized."""

    ways: list[WrittenOption]
    least: int
    most: int


def use_profiles(trace: Trace, cluster: Cluster, profiles: Profiles, policy: Policy, interval: float) -> tuple[Trace, OnlineGoodput]:
    """The same jobs with the sizes that their profile and the policy allow, and the model of how fast they go.

    A policy that fits models as jobs run (Pollux, Sia) is offered every count, or its own configurations, and jobs choose their batch.
    Under others jobs are tuned beforehand: each keeps the batch of the trace, and is listed with the devices that it asks for; policies
    that size jobs may give an adaptive one any count that its batch allows. Durations become those at the size asked for.
    """
    frame, believes = trace.frame, policy.believes
    cells = {name: frame[name].to_list() if name in frame.columns else [None] * frame.height for name in _COLUMNS}
    widths = _widths(cluster) if policy.node_sizes else None
    keeps = policy.keeps_reservations
    node = {name: max(each.gpus for each in cluster.nodes if each.type == name) for name in cluster.types}
    jobs: dict[str, OnlineJob] = {}
    found: list[_Sizes] = []
    durations = []
    for row, (name, asked) in enumerate(zip(frame["job"].to_list(), frame["gpus"].to_list())):
        cell = {column: values[row] for column, values in cells.items()}
        app = _application(trace, profiles, row, cell["app"], cell["model"])
        kinds = [one for one in cluster.types if app.runs_on(one) and cluster.gpus_of(one) and cell["type"] in (None, "", one)]
        job = _job(app, kinds, cell, asked, believes)
        if keeps and cell["reserved"]:
            sizes = _reserved(job, kinds, cell["reserved"], cluster, node)
        elif believes:
            sizes = _believed(job, kinds, cell, asked, cluster, node, widths)
        else:
            sizes = _tuned(job, kinds, cell, asked, cluster, node)
        if not sizes.ways and keeps and cell["reserved"]:
            raise _fault(trace, row, "reserved", f"reserves {cell['reserved']}, which it cannot have", "reserve less, or another type")
        if not sizes.ways:
            raise _impossible(trace, row, cluster, job, kinds, asked)
        first = [way for way in sizes.ways if way.type == sizes.ways[0].type]
        durations.append(min(first, key=lambda way: abs(way.gpus - asked)).duration)
        jobs[name] = job._replace(work=durations[-1])
        found.append(sizes)
    fresh = frame.with_columns(
        pl.Series("options", [format_options(sizes.ways) for sizes in found]),
        pl.Series("duration", durations, dtype=pl.Float64),
        pl.Series("min_gpus", [sizes.least for sizes in found], dtype=pl.Int64),
        pl.Series("max_gpus", [sizes.most for sizes in found], dtype=pl.Int64),
    )
    model = OnlineGoodput(jobs, cluster.types, tuple(node[name] for name in cluster.types), interval if believes else 0.0, believes)
    return Trace(fresh, trace.source, trace.notes), model


def check_alone(**others: Any) -> None:
    """Refuse other sources of speeds beside profiles."""
    for name, given in others.items():
        if given is not None:
            raise RefusedError(f"speeds come from --profiles and from {name} at once", where="--profiles", fix="leave one of them out")


def _job(app: Application, kinds: Sequence[str], cell: dict[str, Any], asked: int, believes: bool) -> OnlineJob:
    """What it trains; its batch is fixed for some kinds, and if the policy adapts none. Pipelines have one batch size per replica."""
    if cell["kind"] == "hybrid":
        stages = dict(part.split(":") for part in (cell["stages"] or "").split("|") if part)
        return OnlineJob(app, 1.0, 0.0, {one: Pipeline.measured(app.on(one), int(stages.get(one, 0))) for one in kinds})
    batch = float(cell["batch_size"] or 0) if cell["kind"] in _FIXED or not believes else 0.0
    if not believes and not batch and kinds:
        batch = max(app.training.base, asked * max(app.on(one).local_least for one in kinds))
    return OnlineJob(app, 1.0, batch)


def _believed(
    job: OnlineJob,
    kinds: Sequence[str],
    cell: dict[str, Any],
    asked: int,
    cluster: Cluster,
    node: dict[str, int],
    widths: dict[str, set[int]] | None,
) -> _Sizes:
    """Every size that batches allow, or the policy has configurations for; rigid jobs have one, strong scaling ends at what is asked."""
    ways = []
    for kind in kinds:
        most, unit = min(job.most(kind), cluster.gpus_of(kind)), job.unit(kind)
        most = min(most, asked) if cell["kind"] == "strong-scaling" else most
        sizes = (
            [asked] if cell["kind"] == "rigid" else [size for size in range(unit, most + 1, unit) if widths is None or size in widths[kind]]
        )
        ways += [WrittenOption(kind, size, job.seconds(kind, size, node[kind])) for size in sizes if 0 < size <= most]
    rigid = cell["kind"] == "rigid"
    return _Sizes(ways, asked if rigid else min((way.gpus for way in ways), default=1), max((way.gpus for way in ways), default=1))


def _reserved(job: OnlineJob, kinds: Sequence[str], reserved: str, cluster: Cluster, node: dict[str, int]) -> _Sizes:
    """The one size that is kept for it."""
    kind, _, size = reserved.partition(":")
    gpus = int(size)
    fits = kind in kinds and gpus <= min(job.most(kind), cluster.gpus_of(kind)) and gpus % job.unit(kind) == 0
    return _Sizes([WrittenOption(kind, gpus, job.seconds(kind, gpus, node[kind]))] if fits else [], gpus, gpus)


def _tuned(job: OnlineJob, kinds: Sequence[str], cell: dict[str, Any], asked: int, cluster: Cluster, node: dict[str, int]) -> _Sizes:
    """The size asked for on every type; a policy that sizes jobs keeps to the trace's limits, or to what batch and kind allow."""
    fits = [kind for kind in kinds if 0 < asked <= min(job.most(kind), cluster.gpus_of(kind)) and asked % job.unit(kind) == 0]
    ways = [WrittenOption(kind, asked, job.seconds(kind, asked, node[kind])) for kind in fits]
    if cell["kind"] == "rigid" or not fits:
        return _Sizes(ways, asked, asked)
    widest = asked if cell["kind"] == "strong-scaling" else max(min(job.most(kind), cluster.gpus_of(kind)) for kind in fits)
    least, most = cell["min_gpus"] or min(job.unit(kind) for kind in fits), cell["max_gpus"] or widest
    return _Sizes(ways, min(least, asked), max(most, asked))


def _widths(cluster: Cluster) -> dict[str, set[int]]:
    """Devices of the configurations of each type."""
    found: dict[str, set[int]] = {name: set() for name in cluster.types}
    for each in node_classes(cluster):
        found[each.type] |= {gpus for _, gpus in each.widths()}
    return found


def _application(trace: Trace, profiles: Profiles, row: int, *names: str | None) -> Application:
    for name in names:
        if name and name in profiles.applications:
            return profiles[name]
    app = next((name for name in names if name), "")
    known = ", ".join(sorted(profiles.applications))
    raise _fault(trace, row, "app", f"trains '{app}', of which there is no profile", f"the profiles have {known}")


def _impossible(trace: Trace, row: int, cluster: Cluster, job: OnlineJob, kinds: Sequence[str], asked: int) -> TraceError:
    """The error for a job that has no option."""
    if not any(job.most(kind) for kind in kinds):
        what = f"has no batch that fits or no profile for any device of '{cluster}'"
        return _fault(trace, row, "app", what, "check --profiles and --cluster")
    text = ", ".join(f"at most {min(job.most(kind), cluster.gpus_of(kind))} of {kind}" + _in_units(job.unit(kind)) for kind in kinds)
    return _fault(trace, row, "gpus", f"asks for {asked} devices; its batch and the cluster allow {text}", "ask for such a number")


def _in_units(unit: int) -> str:
    return f" (in {unit}s, the stages of its pipeline)" if unit > 1 else ""


def _fault(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}' {what}", file=trace.source, line=row + 2, field=field, fix=fix)
