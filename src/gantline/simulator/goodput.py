"""Measured profiles on the engine: the sizes that jobs may have follow from them, and how fast they go."""

from __future__ import annotations

from typing import Any

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, TraceError
from gantline.performance.goodput.batch import split_batch
from gantline.performance.goodput.efficiency import gain
from gantline.performance.goodput.measured import Application, Profiles, packed_shape
from gantline.performance.goodput.online import OnlineGoodput, OnlineJob
from gantline.policies.sia.configurations import node_classes
from gantline.workload.options import WrittenOption, format_options
from gantline.workload.trace import Trace

_FIXED = ("rigid", "strong-scaling")  # kinds of jobs whose batch stays


def use_profiles(trace: Trace, cluster: Cluster, profiles: Profiles, policy: Any, interval: float) -> tuple[Trace, OnlineGoodput]:
    """The same jobs with a way to run for every size that their profile and the policy allow, and the model of how fast they go.

    A policy that has configurations of its own (Sia) is offered those, others every count. The seconds that are listed are those at the
    batch a job begins with; durations become those at the size asked for.
    """
    frame = trace.frame
    columns = {name: frame[name].to_list() if name in frame.columns else [None] * frame.height for name in ("app", "model", "kind", "type")}
    batches = frame["batch_size"].to_list() if "batch_size" in frame.columns else [None] * frame.height
    widths = _widths(cluster) if getattr(policy, "configurations", False) else None
    node = {name: max(each.gpus for each in cluster.nodes if each.type == name) for name in cluster.types}
    jobs: dict[str, OnlineJob] = {}
    options, durations = [], []
    for row, (name, asked, batch) in enumerate(zip(frame["job"].to_list(), frame["gpus"].to_list(), batches)):
        app, kind = _application(trace, profiles, row, columns["app"][row], columns["model"][row]), columns["kind"][row] or "adaptive"
        if kind == "hybrid":
            raise _fault(trace, row, "kind", "is hybrid parallel", "use --regime sia, which knows pipelines")
        stays = float(batch or 0) if kind in _FIXED else 0.0
        ways = []
        for type_ in cluster.types:
            if app.runs_on(type_) and cluster.gpus_of(type_) and columns["type"][row] in (None, "", type_):
                most = int(min((stays or app.training.most) // app.on(type_).local_least, cluster.gpus_of(type_)))
                sizes = [asked] if kind == "rigid" else [size for size in range(1, most + 1) if widths is None or size in widths[type_]]
                ways += [WrittenOption(type_, size, _seconds(app, type_, size, stays, node[type_])) for size in sizes if 0 < size <= most]
        if not ways:
            raise _fault(trace, row, "app", f"has no batch or no profile for any device of '{cluster}'", "check --profiles and --cluster")
        options.append(format_options(ways))
        first = ways[0].type
        durations.append(min((way for way in ways if way.type == first), key=lambda way: abs(way.gpus - asked)).duration)
        jobs[name] = OnlineJob(app, durations[-1], stays)
    least = [1 if (kind or "") != "rigid" else gpus for kind, gpus in zip(columns["kind"], frame["gpus"].to_list())]
    widest = [max(int(part.split(":")[1].split("=")[0]) for part in cell.split("|")) for cell in options]
    fresh = frame.with_columns(
        pl.Series("options", options),
        pl.Series("duration", durations, dtype=pl.Float64),
        pl.Series("min_gpus", least, dtype=pl.Int64),
        pl.Series("max_gpus", widest, dtype=pl.Int64),
    )
    model = OnlineGoodput(jobs, cluster.types, tuple(node[name] for name in cluster.types), interval)
    return Trace(fresh, trace.source, trace.notes), model


def check_alone(**others: Any) -> None:
    """Refuse other sources of speeds beside profiles."""
    for name, given in others.items():
        if given is not None:
            raise RefusedError(f"speeds come from --profiles and from {name} at once", where="--profiles", fix="leave one of them out")


def _widths(cluster: Cluster) -> dict[str, set[int]]:
    """Devices of the configurations of each type."""
    found: dict[str, set[int]] = {name: set() for name in cluster.types}
    for each in node_classes(cluster):
        found[each.type] |= {gpus for _, gpus in each.widths()}
    return found


def _seconds(app: Application, kind: str, gpus: int, batch: float, per_node: int) -> float:
    """Seconds of all epochs on so many devices, packed, at one batch."""
    training, limits = app.training, OnlineJob(app, 1.0).limits(kind)
    local, steps = split_batch(batch or max(limits.base, limits.local_least * gpus), gpus, limits)
    step, sync = app.on(kind).seconds(packed_shape(gpus, per_node), local)
    total, spent, before = gpus * local * (steps + 1), 0.0, 0.0
    for epoch, edge in enumerate(training.edges.tolist()):
        spent += (edge - before) * (step + steps * (step - sync)) / gain(*training.noise(total, epoch), total / training.base)
        before = edge
    return spent


def _application(trace: Trace, profiles: Profiles, row: int, *names: str | None) -> Application:
    for name in names:
        if name and name in profiles.applications:
            return profiles[name]
    told = next((name for name in names if name), "")
    known = ", ".join(sorted(profiles.applications))
    raise _fault(trace, row, "app", f"trains '{told}', of which there is no profile", f"the profiles have {known}")


def _fault(trace: Trace, row: int, field: str, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}' {what}", file=trace.source, line=row + 2, field=field, fix=fix)
