"""Where a job is, as JSON: what a checkpoint keeps of it beside the model, and what newcomers are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gantline.train.noise import NoiseMeter
from gantline.train.sampler import Position

if TYPE_CHECKING:
    from gantline.train.job import Job


def to_json(job: Job) -> dict[str, Any]:
    """All that a job needs to go on from here, but the model."""
    return {
        "version": 1,
        "step": job.step,
        "done": job.done,
        "epoch": job.position.epoch,
        "index": job.position.index,
        "batch": job.asked_batch,
        "progress": job.progress,
        "noise": job.noise.state(),
        "requested": job.requested_gpus,
        "hooks": {type(hook).__name__: dict(hook.state()) for hook in job.hooks},
        "own": job.state,
    }


def resume(job: Job, kept: Mapping[str, Any]) -> None:
    """Go on from there."""
    if kept.get("version") != 1:
        raise ValueError(f"{job.store.newest()} was written by another version of gantline.train")
    job.step, job.done, job.progress = int(kept["step"]), float(kept["done"]), float(kept["progress"])
    job.position = Position(int(kept["epoch"]), int(kept["index"]))
    job.asked_batch, job.requested_gpus = kept["batch"], kept["requested"]
    job.noise = NoiseMeter.of(kept["noise"])
    job.state = dict(kept["own"])
    for hook in job.hooks:
        hook.resume(kept["hooks"].get(type(hook).__name__, {}))
