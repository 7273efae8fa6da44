"""`--performance pairs`: speeds of jobs that share devices by a table of measured pairs, and by what the trace says of others."""

from __future__ import annotations

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.files.pair_tables import PairProfiles, read_pair_profiles
from gantline.performance.pair_model import PairModel
from gantline.performance.pair_table import AloneProfile
from gantline.workload.trace import Trace


def pair_model(jobs: Trace, cluster: Cluster, profiles: PairProfiles | None = None) -> PairModel:
    """The model of a run; configurations are the trace's `model`. Without `--profiles` the pairs are made up."""
    if "model" not in jobs.columns:
        fix = "add a column model with a configuration per job, such as ResNet18/CIFAR-10/32/amp"
        raise RefusedError("a table of pairs needs to know what jobs train", where="--performance pairs", fix=fix)
    known = read_pair_profiles() if profiles is None else profiles
    return PairModel(known.pairs, {**_described(jobs), **known.alone})


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
