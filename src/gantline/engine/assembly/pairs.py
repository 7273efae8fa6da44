"""`--performance pairs`: speeds of jobs that share devices by a table of measured pairs, and by what the trace says of others."""

from __future__ import annotations

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.engine.assembly.throughputs import job_types
from gantline.models.sharing.pair_model import PairModel
from gantline.models.sharing.pair_table import AloneProfile
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.traces.files.speeds import PairProfiles, read_pair_profiles
from gantline.traces.trace import Trace


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
    from gantline.models.sharing.pair_model import typed_pair_model

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
