"""ElasticFlow's workloads (ASPLOS 2023): its traces with their tables of speeds, and a generator of the same kind of jobs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.rng import stream
from gantline.traces.generators.presets import Preset
from gantline.traces.generators.settings import WorkloadSettings
from gantline.traces.importers.table import Sieve, number, present, read_foreign, text
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

# ElasticFlow's traces (ASPLOS 2023) with its tables of speeds.
#
# The raw form has ``job_id,submission_time,duration,num_gpu``; the generated form adds a model, iterations, a batch size and a
# deadline (``submission_time,num_iteration,deadline`` or, as older files spell it, ``submit_time,iteration,ddl``, and perhaps
# ``best_effort``). Raw jobs get theirs as the artifact draws them: those of at least ten minutes on a power of two of at most 64 GPUs,
# one of fourteen pairs of model and batch, as many iterations as fit into the duration, and a deadline of 0.5 to 1.5 durations. A table
# of speeds has ``model,global_batch,g1,...,g64`` in iterations per second; blank, ``nan`` and 0 mean not usable.


Curve = dict[int, float]  # iterations per second by GPUs
Table = dict[tuple[str, int], Curve]

_SPELLINGS = {"submission_time": "submit_time", "num_iteration": "iteration", "deadline": "ddl"}
#: Pairs of model and batch that raw jobs are drawn from.
PAIRS = (
    ("resnet50", 64), ("resnet50", 128), ("resnet50", 256), ("vgg16", 64), ("vgg16", 128), ("vgg16", 256), ("inception3", 64),
    ("inception3", 128), ("bert", 64), ("bert", 128), ("gpt2", 128), ("gpt2", 256), ("deepspeech2", 32), ("deepspeech2", 64),
)  # fmt: skip
#: The most GPUs that its elastic policies give, by type; other models: as many as the batch, at most 64.
_LIMITS: dict[str, dict[tuple[str, int], int]] = {
    "a100": {
        ("gpt2", 128): 16, ("gpt2", 256): 32, ("bert", 64): 8, ("bert", 128): 16, ("inception3", 64): 16, ("inception3", 128): 32,
        ("resnet50", 64): 32, ("vgg16", 64): 32,
    },
    "t4": {("deepspeech2", 320): 32},
}  # fmt: skip
_T4_MODELS = {"bert": 16, "cifar10": 16, "yolov3": 4, "ncf": 1}


def read(
    src: Path,
    *,
    throughputs: Annotated[Path | None, "its table of speeds (CSV): model,global_batch,g1,g2,...,g64"] = None,
    type: Annotated[str, "device type of that table; empty: as the file is called (A100.csv: a100)"] = "",
    seed: Annotated[int, "seed of what raw jobs are given: model, batch and deadline"] = 0,
    slack: Annotated[str, "deadlines of raw jobs, in durations: LOW:HIGH"] = "0.5:1.5",
    first: Annotated[int, "only so many jobs, the first by submission; 0: all"] = 0,
    rigid: Annotated[bool, "only the size that a job asks for, not all of its table"] = False,
) -> Trace:
    """The jobs of a trace of ElasticFlow; `work` is the number of iterations, `scale_limit` the most GPUs its elastic policies give."""
    if throughputs is None:
        raise UsageError(
            "needs a table of speeds", where="format 'elasticflow'", fix="--throughputs FILE.csv (model,global_batch,g1,...,g64)"
        )
    table = read_speeds(throughputs)
    kind = (type or throughputs.name.partition(".")[0]).lower()
    raw = _respelled(read_foreign(src, ()))
    needed = ("job_id", "submission_time", "duration", "num_gpu")
    generated = {"num_iteration", "model_name", "deadline", "batch_size"}
    for name in (*needed, *(sorted(generated) if generated & set(raw.frame.columns) else ())):
        if name not in raw.frame.columns:
            raise raw.error(f"column '{name}' is missing", field=name, fix=near(name, raw.frame.columns))
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_id"),
            "arrival": number(raw, "submission_time", required=True),
            "gpus": number(raw, "num_gpu", required=True),
            "duration": number(raw, "duration", required=True),
        }
    )
    sieve = Sieve(frame, raw)
    if first < 0:
        raise UsageError(f"first is {first}", where="format 'elasticflow'", fix="0 for all, or how many jobs")
    if first:
        sieve.frame = sieve.frame.with_columns(pl.col("arrival").rank("ordinal").alias("_nth"))
    if generated <= set(raw.frame.columns):
        _read_generated(sieve, raw)
    else:
        _draw(sieve, table, kind, seed, _range(slack))
    if first:
        sieve.drop(pl.col("_nth") > first, f"not among the first {first}")
        sieve.frame = sieve.frame.drop("_nth")
    _add_sizes(sieve, table, kind, raw, rigid)
    return sieve.finish(from_zero=False)


def read_speeds(path: Path) -> Table:
    """Iterations per second by (model, batch) and GPUs."""
    if not path.is_file():
        raise NotFoundError("no such file", where=f"throughputs {path}", fix="name its table of speeds (CSV)")
    raw = read_foreign(path, ("model", "global_batch"))
    sizes = {int(name[1:]): name for name in raw.frame.columns if name[:1] == "g" and name[1:].isdigit()}
    if not sizes or any(size & (size - 1) for size in sizes):
        raise raw.error("has no columns g1, g2, g4, ...", fix="one column per power of two of GPUs")
    models, batches = text(raw, "model").to_list(), number(raw, "global_batch", required=True).to_list()
    columns = {size: number(raw, name).fill_null(0.0).to_list() for size, name in sorted(sizes.items())}
    return {
        (model, int(batch)): {size: speeds[row] for size, speeds in columns.items() if speeds[row] > 0.0}
        for row, (model, batch) in enumerate(zip(models, batches))
    }


def scale_limit(kind: str, model: str, batch: int, curve: Curve) -> int:
    """The most GPUs its elastic policies give: fixed numbers for its two device types, else where the curve is highest."""
    if kind not in _LIMITS:
        return max(curve, key=lambda size: (curve[size], -size))
    other = _T4_MODELS.get(model, 64) if kind == "t4" else min(batch, 64)
    return max((size for size in curve if size <= _LIMITS[kind].get((model, batch), other)), default=min(curve))


def _respelled(raw: RawTable) -> RawTable:
    names = {old: new for new, old in _SPELLINGS.items() if old in raw.frame.columns and new not in raw.frame.columns}
    return RawTable(raw.frame.rename(names), raw.source, raw.locate, raw.header_line)


def _read_generated(sieve: Sieve, raw: RawTable) -> None:
    effort = present(raw.frame["best_effort"]).fill_null("0") != "0" if "best_effort" in raw.frame.columns else pl.Series([False])
    due = number(raw, "deadline")
    sieve.frame = sieve.frame.with_columns(
        number(raw, "num_iteration", required=True).alias("work"),
        text(raw, "model_name").alias("model"),
        number(raw, "batch_size", required=True).alias("batch_size"),
        pl.when(pl.lit(effort) if len(effort) > 1 else pl.lit(bool(effort[0]))).then(None).otherwise(due).alias("deadline"),
    )


def _draw(sieve: Sieve, table: Table, kind: str, seed: int, slack: tuple[float, float]) -> None:
    """What the artifact's generator adds to raw jobs, with draws of our own."""
    gpus = pl.col("gpus").cast(pl.Int64)
    sieve.drop(pl.col("duration") < 600, "shorter than ten minutes")
    sieve.drop((gpus < 1) | (gpus > 64) | (gpus & (gpus - 1) != 0), "not on a power of two of at most 64 GPUs")
    pairs = [pair for pair in PAIRS if pair in table] or sorted(table)
    draw = stream(seed, 0, "elasticflow/jobs")
    models, batches, work, due = [], [], [], []
    for arrival, size, duration in sieve.frame.select("arrival", "gpus", "duration").iter_rows():
        able = [pair for pair in pairs if pair[1] >= size and int(size) in table[pair]]
        if not able:
            raise UsageError(f"no model of the table runs on {int(size)} GPUs", where=f"throughputs of {kind}", fix="use a larger table")
        model, batch = able[int(draw.integers(len(able)))]
        models.append(model)
        batches.append(float(batch))
        work.append(float(max(math.floor(duration * table[model, batch][int(size)]), 1)))
        due.append(arrival + int(draw.uniform(*slack) * duration))
    sieve.note(f"models, batch sizes, iterations and deadlines were drawn as ElasticFlow's generator draws them (seed {seed})")
    columns: dict[str, list[Any]] = {"work": work, "model": models, "batch_size": batches, "deadline": due}
    sieve.frame = sieve.frame.with_columns(pl.Series(name, values) for name, values in columns.items())


def _add_sizes(sieve: Sieve, table: Table, kind: str, raw: RawTable, rigid: bool) -> None:
    """The sizes a job may have, its speed at each, and the most that it is given."""
    options, speeds, least, most, limits = [], [], [], [], []
    columns = sieve.frame.select("_row", "model", "batch_size", "work", "gpus")
    for row, model, batch, work, gpus in columns.iter_rows():
        curve = table.get((model, int(batch)))
        usable = {size: speed for size, speed in (curve or {}).items() if size <= batch and (not rigid or size == gpus)}
        if not usable:
            known = ", ".join(sorted({f"{name} {size}" for name, size in table}))
            raise raw.error(f"no speed of '{model}' at batch size {int(batch)}", row=row, field="model_name", fix=f"the table has {known}")
        options.append(format_options(WrittenOption(kind, size, work / speed) for size, speed in usable.items()))
        speeds.append("|".join(f"{size}={speed!r}" for size, speed in usable.items()))
        least.append(min(*usable, int(gpus)))
        most.append(max(*usable, int(gpus)))
        limits.append(scale_limit(kind, model, int(batch), usable))
    sieve.frame = sieve.frame.with_columns(
        pl.Series("options", options), pl.Series("min_gpus", least), pl.Series("max_gpus", most),
        pl.Series("scale_limit", np.array(limits, dtype=np.int64)), pl.Series("throughputs", speeds),
    )  # fmt: skip


def _range(slack: str) -> tuple[float, float]:
    low, _, high = slack.partition(":")
    try:
        found = float(low), float(high or low)
    except ValueError:
        raise UsageError(f"slack is '{slack}'", where="format 'elasticflow'", fix="such as 0.5:1.5") from None
    if not 0.0 < found[0] <= found[1]:
        raise UsageError(f"slack is '{slack}'", where="format 'elasticflow'", fix="LOW:HIGH with 0 < LOW <= HIGH")
    return found


# ElasticFlow's workload (ASPLOS 2023): Philly-like lengths and sizes, and a deadline for every job.
#
# The distributions are those of its artifact; the draws are ours. A deadline may lie before the job could end on the GPUs
# that it asks for: an elastic scheduler has to give it more.

_MIDDLE = 60.0 * 10**2.5

SETTINGS = WorkloadSettings.read(
    {
        "jobs": 100,
        "jobs_per_hour": 3600 / 1500,
        "sizes": {1: 0.83, 2: 0.03, 4: 0.03, 8: 0.1, 16: 0.01},
        "durations": {"kind": "loguniform", "pieces": {f"600-{_MIDDLE}": 0.8, f"{_MIDDLE}-600000": 0.2}},
        "deadline_share": 1.0,
        "deadline_slack": (0.5, 1.5),
    }
)

elasticflow = Preset("elasticflow", SETTINGS)
