"""Workloads of PAL (SC 2024): Sia's Philly traces with a network each; the length of a job is a number of steps.

As its authors store one trace (``job_id,num_gpus,submit_time,duration,model``; there `duration` is the number of steps) or several in one
file (``trace,job,gpus,submit_s,iterations,model``). Seconds per step and the class of each network are those of their Longhorn runs; a
network that they do not list has class A and needs a column ``iteration_time``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace

STEP_TIME = {
    "resnet50": 0.17540429367763434,
    "GPT2": 3.5714,
    "DCGAN": 0.0469266931,
    "BERT": 0.179,
    "vgg19": 0.300610341,
    "PointNet": 0.28125,
}
CLASSES = {"resnet50": "A", "GPT2": "B", "DCGAN": "B", "BERT": "B", "vgg19": "C", "PointNet": "D"}
_THEIRS = {"job": "job_id", "gpus": "num_gpus", "submit_s": "submit_time", "iterations": "duration"}


def read(src: Path, *, trace: Annotated[int | None, "which of several traces in one file"] = None) -> Trace:
    """The jobs of one trace; times are kept as they are."""
    raw = read_foreign(src, ("model",))
    here = raw.frame.columns
    names = {ours: ours if ours in here else theirs for ours, theirs in _THEIRS.items()}
    for name in names.values():
        if name not in here:
            raise raw.error(f"column '{name}' is missing", field=name, fix="trace,job,gpus,submit_s,iterations,model")
    model = text(raw, "model")
    step_time = model.replace_strict(STEP_TIME, default=None, return_dtype=pl.Float64)
    if "iteration_time" in here:
        step_time = number(raw, "iteration_time").fill_null(step_time)
    unknown = step_time.is_null()
    if unknown.any():
        row = int(unknown.arg_true()[0])
        raise raw.error(f"no seconds per step are known for '{model[row]}'", row=row, field="model", fix="add a column iteration_time")
    steps = number(raw, names["iterations"], required=True)
    frame = pl.DataFrame(
        {
            "job": text(raw, names["job"]),
            "arrival": number(raw, names["submit_s"], required=True),
            "gpus": number(raw, names["gpus"], required=True),
            "duration": steps * step_time,
            "model": model,
            "speed_class": model.replace_strict(CLASSES, default="A", return_dtype=pl.String),
            "iterations": steps,
            "iteration_time": step_time,
            "_trace": number(raw, "trace", required=True) if "trace" in here else pl.Series([0.0] * len(raw.frame)),
        }
    )
    sieve = Sieve(frame, raw)
    listed = sorted({int(each) for each in frame["_trace"].to_list()})
    if trace is None and len(listed) > 1:
        raise raw.error(f"holds {len(listed)} traces", field="trace", fix=f"choose one: --set trace={listed[0]}")
    if trace is not None:
        if trace not in listed:
            raise raw.error(f"has no trace {trace}", field="trace", fix=f"it has {', '.join(map(str, listed))}")
        sieve.frame = sieve.frame.filter(pl.col("_trace") == trace)
    return sieve.finish(from_zero=False)
