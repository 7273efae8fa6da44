"""Where a job is, as JSON: what a checkpoint keeps of it beside the model, and what new ranks of a gang receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gantline.train.hooks import Hook
from gantline.train.noise import NoiseMeter
from gantline.train.sampler import Position
from gantline.train.store import Checkpoints
from gantline.train.training import Training


def to_json(job: Training, hooks: Sequence[Hook]) -> dict[str, object]:
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
        "hooks": {type(hook).__name__: dict(hook.state()) for hook in hooks},
        "own": job.state,
    }


def check_version(kept: Mapping[str, Any], store: Checkpoints) -> None:
    """Refuse what another version wrote."""
    if kept and kept.get("version") != 1:
        raise ValueError(f"{store.newest()} was written by another version of gantline.train")


def resume(job: Training, hooks: Sequence[Hook], kept: Mapping[str, Any]) -> None:
    """Go on from there."""
    job.step, job.done, job.progress = int(kept["step"]), float(kept["done"]), float(kept["progress"])
    job.position = Position(int(kept["epoch"]), int(kept["index"]))
    job.asked_batch, job.requested_gpus = kept["batch"], kept["requested"]
    job.noise = NoiseMeter.of(kept["noise"])
    job.state = dict(kept["own"])
    for hook in hooks:
        hook.resume(kept["hooks"].get(type(hook).__name__, {}))
