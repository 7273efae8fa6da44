"""Logs that the owners of clusters have published as tables, a function for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.dates import divide
from gantline.traces.importers.table import (
    Sieve,
    columns_of,
    date_of,
    moment,
    number,
    outcomes,
    read_foreign,
    text,
    zoned_moment,
)
from gantline.traces.trace import Trace

_STATES = {"COMPLETED": "completed", "CANCELLED": "killed", "FAILED": "failed", "TIMEOUT": "failed", "NODE_FAIL": "failed"}
_LUCID_COLUMNS = ("dataset", "amp", "speed", "gpu_util", "gmem_util", "gmem")
_GB_PER_MIB = 2**20 / 1e9


def acme(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
    kind: Annotated[str, "keep the jobs of one type only, such as Pretrain"] = "",
) -> Trace:
    """Shanghai AI Laboratory's clusters Seren and Kalos (Hu et al., NSDI 2024), development of large language models.

    ``trace_seren.csv`` and ``trace_kalos.csv``: ``job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,
    duration,queue,gpu_time``; Kalos adds ``mem_per_pod_GB,shared_mem_per_pod,fail_time,stop_time``. Dates carry their zone. As in Helios,
    ``queue`` is the seconds a job waited. ``type`` says what the job is for (Pretrain, Evaluation, Debug, ...) and becomes ``app``.
    """
    raw = read_foreign(src, ("job_id", "gpu_num", "type", "submit_time", "duration"))
    here = raw.frame.columns
    columns = columns_of(
        raw,
        {
            "job": "job_id",
            "arrival": zoned_moment(raw, "submit_time"),
            "gpus": "gpu_num",
            "duration": "duration",
            "user": "user",
            "app": "type",
            "outcome": outcomes(text(raw, "state").str.to_uppercase(), _STATES),
        },
    )
    if "start_time" in here:
        columns["started"] = zoned_moment(raw, "start_time")
    columns |= columns_of(raw, {"cpus": "cpu_num"}, optional=True)
    if "mem_per_pod_GB" in here and "node_num" in here:
        columns["memory"] = number(raw, "mem_per_pod_GB") * number(raw, "node_num")
    sieve = Sieve(pl.DataFrame(columns), raw)
    if kind:
        sieve.drop(pl.col("app").str.to_lowercase() != kind.lower(), f"not of type '{kind}'")
    return _finished_log(sieve, cpu_jobs)


def helios(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
    vc: Annotated[str, "keep the jobs of one virtual cluster only"] = "",
) -> Trace:
    """SenseTime's Helios traces (Hu et al., SC 2021), and the logs of Lucid (ASPLOS 2023) in the same shape.

    ``cluster_log.csv``: ``job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue``.
    More than half of the jobs ask for no GPU. ``queue`` is the seconds a job waited, not the name of a queue; the virtual
    cluster is the queue here. TIMEOUT and NODE_FAIL count as failed, as in the paper.
    """
    raw = read_foreign(src, ("job_id", "gpu_num", "submit_time", "duration"))
    here = raw.frame.columns
    columns = columns_of(
        raw,
        {
            "job": "job_id",
            "arrival": moment(raw, "submit_time"),
            "gpus": "gpu_num",
            "duration": "duration",
            "user": "user",
            "queue": "vc",
            "app": "jobname",
            "model": "model",
        },
        optional=True,
    )
    if "start_time" in here:
        columns["started"] = moment(raw, "start_time")
    columns |= columns_of(raw, {"cpus": "cpu_num", "batch_size": "batchsize"}, optional=True)
    if "state" in here:
        columns["outcome"] = outcomes(text(raw, "state"), _STATES)
    columns |= {name: raw.frame[name] for name in _LUCID_COLUMNS if name in here}
    sieve = Sieve(pl.DataFrame(columns), raw)
    if vc:
        sieve.drop(pl.col("queue") != vc if "queue" in columns else pl.lit(True), f"not of virtual cluster '{vc}'")
    return _finished_log(sieve, cpu_jobs)


def openb(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the pods that ask for CPUs only"] = False,
) -> Trace:
    """Alibaba's GPU-sharing trace of 2023 (Weng et al., ATC 2023): ``openb_pod_list_*.csv``.

    One pod a row: ``name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,
    scheduled_time``. A pod of one GPU may ask for a part of it (``gpu_milli`` below 1000), kept as ``gpu_demand``. A
    ``gpu_spec`` such as ``V100M16|V100M32`` becomes one alternative per type. Pods still running when the log was taken
    have a time of deletion at its end; pods that were never scheduled have no ``scheduled_time``.
    """
    times = ("creation_time", "deletion_time", "scheduled_time")
    raw = read_foreign(src, ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "pod_phase", *times))
    spec, placed = text(raw, "gpu_spec"), number(raw, "scheduled_time")
    columns = columns_of(
        raw,
        {
            "job": "name",
            "arrival": "creation_time",
            "gpus": number(raw, "num_gpu").fill_null(0),
            "duration": number(raw, "deletion_time") - placed,
            "queue": "qos",
            "type": pl.select(pl.when(~spec.str.contains("|", literal=True)).then(spec).otherwise(pl.lit(""))).to_series(),
            "cpus": divide(number(raw, "cpu_milli"), 1000),
            "memory": number(raw, "memory_mib") * _GB_PER_MIB,
            "outcome": outcomes(text(raw, "pod_phase"), {"Succeeded": "completed", "Failed": "failed"}),
            "gpu_demand": divide(number(raw, "num_gpu") * number(raw, "gpu_milli"), 1000),
            "started": placed,
            "_spec": spec,
        },
    )
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.drop(pl.col("arrival").is_null(), "no time of creation")
    sieve.drop(pl.col("started").is_null(), "never scheduled")
    sieve.drop_unusable(cpu_jobs)
    parts = int(((sieve.frame["gpu_demand"] < sieve.frame["gpus"]) & (sieve.frame["gpus"] > 0)).sum())
    if parts:
        sieve.note(f"rounded {parts} requests for a part of a GPU up to a whole one (exact in gpu_demand: --policy sharing packs them)")
    if sieve.frame["_spec"].str.contains("|", literal=True).any():
        sieve.frame = sieve.frame.with_columns(options=_alternatives())
    sieve.note_start("second {:.0f} of the original".format)
    return sieve.finish(from_zero=True)


def _alternatives() -> pl.Expr:
    """``A|B`` as ``A:2=60|B:2=60``: the same number of GPUs for the same time on either type."""
    variant = pl.format(":{}={}", pl.col("gpus").cast(pl.Int64, strict=False), pl.col("duration"))
    both = pl.concat_str(pl.col("_spec").str.replace_all("|", variant + "|", literal=True), variant)
    return pl.when(pl.col("_spec").str.contains("|", literal=True)).then(both).otherwise(pl.lit(""))


def spot(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
) -> Trace:
    """Alibaba's spot GPU trace of 2026 (GFS, ASPLOS 2026): ``job_info_df.csv``.

    ``job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type``. A job has
    ``worker_num`` equal workers, each with its own GPUs and CPUs. High-priority (HP) jobs get priority 1, spot jobs 0.
    """
    raw = read_foreign(src, ("job_name", "gpu_request", "worker_num", "submit_time", "duration", "job_type"))
    workers = number(raw, "worker_num").fill_null(1)
    demand = number(raw, "gpu_request").fill_null(0) * workers
    columns = columns_of(
        raw,
        {
            "job": "job_name",
            "arrival": "submit_time",
            "gpus": demand.ceil(),
            "duration": "duration",
            "user": "organization",
            "type": "gpu_model",
            "priority": (text(raw, "job_type") == "HP").cast(pl.Float64),
            "gpu_demand": demand,
        },
    )
    if "cpu_request" in raw.frame.columns:
        columns["cpus"] = number(raw, "cpu_request") * workers
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.drop_unusable(cpu_jobs)
    sieve.note_parts()
    return sieve.finish(from_zero=True)


def philly_list(src: Path) -> Trace:
    """A plain list of jobs with dates: ``timestamp,duration,num_gpus,gpu_time,cluster``; jobs are numbered in the order of their dates.

    The authors of Pollux (OSDI 2021) published the jobs of Microsoft's Philly trace (Jeon et al., ATC 2019) in this form.
    ``gpu_time`` is the product of the two columns before it and is not kept.
    """
    raw = read_foreign(src, ("timestamp", "duration", "num_gpus"))
    job = pl.Series(range(len(raw.frame)), dtype=pl.Int64)
    arrival = moment(raw, "timestamp")
    columns = columns_of(
        raw,
        {"job": job, "arrival": arrival, "gpus": "num_gpus", "duration": "duration", "queue": "cluster"},
        optional=True,
    )
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.drop_unusable(undated="no date")
    sieve.frame = sieve.frame.sort("arrival", maintain_order=True).with_columns(job=pl.int_range(pl.len()))
    sieve.note_start(date_of)
    return sieve.finish(from_zero=True)


def _finished_log(sieve: Sieve, cpu_jobs: bool) -> Trace:
    sieve.drop_unusable(cpu_jobs, idle="never ran (no positive duration)")
    sieve.note_start(date_of)
    return sieve.finish(from_zero=True)
