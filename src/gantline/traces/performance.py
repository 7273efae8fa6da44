"""How fast gangs run: as the trace says, by a table, or by a model of a package or a file, found by its name.

An entry of the group ``gantline.performance_models`` is a model, a class that is made without arguments, or a function
``make(jobs, cluster)`` of the trace and the cluster. One with a reader of profiles of its own (`profile_readers`) takes what was read as a
third argument, which is None where none were given."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Job, Option
from gantline.core.errors import GantlineError, NotFoundError, RefusedError, TraceError, UsageError, near
from gantline.core.options import OptionTable
from gantline.core.tables import Tables
from gantline.models.links.slowest_link_scaling import Scaling, ScalingModel
from gantline.models.model import PerformanceModel, check_model
from gantline.models.parameter_servers import TERMS, ServerJob, ServerModel
from gantline.models.sharing.pair_model import PairModel, typed_pair_model
from gantline.models.sharing.pair_table import AloneProfile
from gantline.models.sharing.throughput_model import ThroughputModel
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.registry import Register
from gantline.traces.files.python_file import PartKind, part_of_file, python_file
from gantline.traces.files.speeds import PairProfiles, read_pair_profiles
from gantline.traces.to_tables import smallest_options
from gantline.traces.trace import Trace


# --- measured throughputs: every job's options get the speeds of its type and gang size ---------------------------------
def use_throughputs(tables: Tables, trace: Trace, table: ThroughputTable, *, across: bool = False) -> ThroughputModel:
    """Give the options of all jobs their measured speeds; those on which a job cannot run are taken away.

    The trace's work is steps, its duration what the engine counts. With ``across`` gangs on several nodes run at the
    table's speeds for that.
    """
    names, steps = job_types(trace), _steps(trace)
    model = ThroughputModel.of(table, tables.cluster.types, tables.ids, names, steps, tables.F[Job.WORK], across=across)
    tables.steps = steps
    owner = np.repeat(np.arange(tables.F.shape[1]), tables.I[Job.OPTION_COUNT])
    speed, apart = _speeds(tables, model, trace, names, owner)
    kept = speed > 0
    counts = np.bincount(owner[kept], minlength=len(names))
    if not counts.all():
        row = int(np.flatnonzero(counts == 0)[0])
        more = f" ({int((counts == 0).sum())} such jobs)" if (counts == 0).sum() > 1 else ""
        raise _fault(trace, row, f"{names[row]} has speed 0 on every device type it may use{more}", "correct the table or the cluster")
    tables.options = OptionTable(tables.options.F.compress(kept, axis=1), tables.options.I.compress(kept, axis=1))
    tables.options.F[Option.RATE] = (speed / model.unit[owner])[kept]
    tables.options.F[Option.RATE_SPREAD] = (apart / model.unit[owner])[kept]
    tables.I[Job.OPTION_COUNT] = counts
    tables.I[Job.OPTION_FIRST] = np.cumsum(counts) - counts
    tables.I[Job.SMALLEST] = smallest_options(tables)
    return model


def _speeds(tables: Tables, model: ThroughputModel, trace: Trace, names: list[tuple[str, int]], owner: Ints) -> tuple[Floats, Floats]:
    """Steps per second of every option, within as few nodes as it can and across more."""
    kind, gpus = tables.options.I[Option.TYPE], tables.options.I[Option.GPUS]
    key = model.key[owner]
    for at in np.flatnonzero(gpus != tables.I[Job.GPUS][owner]):
        key[at] = model.table.key(names[owner[at]][0], int(gpus[at]))
    _refuse_gaps(model, model.alone[key, kind], trace, names, owner, kind, "")
    speed = apart = model.alone[key, kind]
    if model.across:
        size = np.array([max((n.gpus for n in tables.cluster.nodes if n.type == name), default=1) for name in tables.cluster.types])
        spread = np.where((gpus > 1) & (speed > 0), model.alone_across[key, kind], speed)
        _refuse_gaps(model, spread, trace, names, owner, kind, " across nodes")
        apart, speed = spread, np.where(gpus > size[kind], spread, speed)
    return speed, apart


def _refuse_gaps(
    model: ThroughputModel, speed: Floats, trace: Trace, names: list[tuple[str, int]], owner: Ints, kind: Ints, where: str
) -> None:
    gap = np.flatnonzero(np.isnan(speed))
    if len(gap):
        row = int(owner[gap[0]])
        what = f"no throughput of {names[row]} on '{model.types[kind[gap[0]]]}'{where} in {model.table.source or 'the table'}"
        raise _fault(trace, row, what, "measure it, or write 0 if the job cannot run there")


def job_types(trace: Trace) -> list[tuple[str, int]]:
    """Job type and gang size of every job."""
    if "throughput_key" not in trace.frame.columns:
        raise UsageError(
            "has no column 'throughput_key'", where=f"trace {trace.source}", fix="import it with: gantline trace import gavel FILE OUT"
        )
    read: dict[str, tuple[str, int]] = {}
    names = []
    for row, text in enumerate(trace.frame["throughput_key"].cast(pl.String).to_list()):
        if text not in read:
            try:
                name, size = ast.literal_eval(text)
                read[text] = (str(name), int(size))
            except (ValueError, SyntaxError, TypeError):
                raise _fault(trace, row, f"{text!r} is no job type", "write \"('name', gang size)\"") from None
        names.append(read[text])
    return names


def _steps(trace: Trace) -> Floats:
    """Steps of every job."""
    steps = trace.frame["work" if "work" in trace.frame.columns else "duration"].cast(pl.Float64).to_numpy()
    bad = np.flatnonzero(~(steps > 0))
    if len(bad):
        raise _fault(trace, int(bad[0]), f"has {steps[bad[0]]:g} steps", "give a number above 0")
    return np.array(steps)


def _fault(trace: Trace, row: int, what: str, fix: str) -> TraceError:
    return TraceError(f"job '{trace.frame['job'][row]}': {what}", file=trace.source, line=row + 2, field="throughput_key", fix=fix)


# --- jobs that share devices: measured pairs (`--performance pairs`) ----------------------------------------------------


def pair_model(jobs: Trace, cluster: Cluster, profiles: PairProfiles | ThroughputTable | None = None) -> PairModel:
    """The model of a run; configurations are the trace's `model`. Without `--profiles` the pairs are made up."""
    if isinstance(profiles, ThroughputTable):
        return _by_type(jobs, cluster, profiles)
    _require_models(jobs)
    known = read_pair_profiles() if profiles is None else profiles
    assert isinstance(known, PairProfiles)
    return PairModel(known.pairs, {**_described(jobs), **known.alone})


def _by_type(jobs: Trace, cluster: Cluster, table: ThroughputTable) -> PairModel:
    """Pairs by device type and gang size; what a job trains is the name in its `throughput_key`, else its `model`."""
    of_job: dict[str, str] = {}
    if "throughput_key" in jobs.columns:
        of_job = dict(zip(jobs.texts("job"), (name for name, _ in job_types(jobs))))
    else:
        _require_models(jobs)
    named = {*(of_job.values() or jobs.texts("model"))}
    if named.isdisjoint(name for name, _ in table.keys):
        what, fix = f"the table has no job of the trace, such as '{min(named)}'", near(min(named), sorted({name for name, _ in table.keys}))
        raise NotFoundError(what, where=f"profiles {table.source}", fix=fix)
    return typed_pair_model(table, cluster.types, _described(jobs) if "model" in jobs.columns else {}, of_job)


def _require_models(jobs: Trace) -> None:
    if "model" not in jobs.columns:
        fix = "add a column model with a configuration per job, such as ResNet18/CIFAR-10/32/amp"
        raise RefusedError("a table of pairs needs to know what jobs train", where="--performance pairs", fix=fix)


def _described(jobs: Trace) -> dict[str, AloneProfile]:
    """What the trace says of the configurations that it names."""
    here = [name for name in AloneProfile._fields if name in jobs.columns]
    columns = {
        name: jobs.frame[name].cast(pl.Float64, strict=False).fill_null(float("nan")).to_list()
        if name in here
        else [float("nan")] * len(jobs)
        for name in AloneProfile._fields
    }
    rows = (AloneProfile(*row) for row in zip(*columns.values()))
    return {name: profile for name, profile in zip(jobs.texts("model"), rows) if name}


# --- scaling curves of the trace ----------------------------------------------------------------------------------------


def scaling_model(trace: Trace, cluster: Cluster) -> ScalingModel | ServerModel | None:
    """The model of the column `scaling`; None where no job has a curve. A curve that cannot be meant is reported with its line."""
    if "scaling" not in trace.columns:
        return None
    frame = trace.frame
    texts = [text or "" for text in frame["scaling"].to_list()]
    with_servers = [text.partition("=")[0].strip() in TERMS for text in texts]
    if any(with_servers):
        return _servers(trace, texts, with_servers)
    names, gpus = frame["job"].to_list(), frame["gpus"].to_list()
    batches = frame["batch_size"].to_list() if "batch_size" in frame.columns else [None] * frame.height
    curves: list[Scaling | None] = []
    for row, (text, batch) in enumerate(zip(texts, batches)):
        try:
            curves.append(Scaling.parse(text, batch) if text else None)
            ScalingModel.on(names[row : row + 1], curves[-1:], gpus[row : row + 1], cluster)
        except UsageError as error:
            raise _scaling_fault(trace, row, error) from None
    return ScalingModel.on(names, curves, gpus, cluster) if any(curves) else None


def _servers(trace: Trace, texts: list[str], with_servers: list[bool]) -> ServerModel:
    """Jobs that train with parameter servers; others may be beside them only without a curve."""
    frame, jobs = trace.frame, {}
    for row, text in enumerate(texts):
        try:
            if text and not with_servers[row]:
                raise UsageError("other jobs train with parameter servers", fix="give all of them sync= or async=, or none")
            if text:
                jobs[frame["job"][row]] = ServerJob.parse(text)
        except UsageError as error:
            raise _scaling_fault(trace, row, error) from None
    rows = frame.select("job", "gpus", "duration").iter_rows()
    asked = {job: (int(gpus), float(duration)) for job, gpus, duration in rows if job in jobs}
    unit = {job: truth.speed.speed(max(asked[job][0], 1), max(asked[job][0], 1)) for job, truth in jobs.items()}
    return ServerModel(jobs, {job: duration for job, (_, duration) in asked.items()}, unit)


def _scaling_fault(trace: Trace, row: int, error: UsageError) -> TraceError:
    what = error.what if error.what.startswith("job ") else f"job '{trace.frame['job'][row]}': {error.what}"
    return TraceError(what, file=trace.source, line=row + 2, field="scaling", fix=error.fix)


# --- models by name -----------------------------------------------------------------------------------------------------
_TRACE = "trace"
_MODELS = Register(
    "performance_models",
    {
        _TRACE: ("gantline.traces.performance:scaling_model", "the speeds that the trace lists, and its scaling curves"),
        "pairs": (
            "gantline.traces.performance:pair_model",
            "jobs that share devices, by a table of measured pairs (--profiles DIR, or Gavel's FILE)",
        ),
        "shared-links": ("gantline.models.links.shared_links:SharedLinks", "links that gangs share, divided fairly at every instant"),
        "link-circles": ("gantline.models.links.shared_links:LinkCircles", "links that gangs share, by circles: a fast stand-in"),
        "effective-bandwidth": (
            "gantline.models.placement_speeds:EffectiveBandwidth",
            "AllReduce as fast as the ring of devices allows (MAPA); column allreduce_gb",
        ),
    },
    where="--performance",
)


def _may_be_model(value: Any) -> bool:
    return hasattr(value, "rates") or isinstance(value, FunctionType)


_MODEL_IN_FILE = PartKind(
    "performance model", "performance models", "--performance", _may_be_model, "gantline.models.model.PerformanceModel"
)


def find_model(name: str) -> Any:
    """What a name or a file means, before there are jobs."""
    return part_of_file(name, _MODEL_IN_FILE).thing if python_file(name) else _MODELS.load(name)


def is_from_trace(given: Any) -> bool:
    """Whether the speeds of jobs come from the trace alone."""
    return given is find_model(_TRACE)


def model_of(given: Any, jobs: Trace, cluster: Cluster, profiles: object = None) -> PerformanceModel | None:
    """The model of a run with these jobs on that cluster; None: jobs have the speeds of their options."""
    made = not isinstance(given, type) and (hasattr(given, "rates") or not callable(given))
    try:
        found = given if made else given() if isinstance(given, type) else given(jobs, cluster, *(() if profiles is None else (profiles,)))
    except GantlineError:
        raise
    except Exception as error:  # whatever the code of a user raises
        called = getattr(given, "__name__", type(given).__name__)
        raise UsageError(f"'{called}' cannot be made: {type(error).__name__}: {error}", where="--performance") from error
    model: PerformanceModel | None = check_model(found)
    return model
