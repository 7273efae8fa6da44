"""What a training loop calls to be scheduled: leases, progress, checkpoints, batches that follow the allocation.

::

    from gantline import train

    job = train.join()
    job.keep(save, load)  # two functions of a path
    for batch in job.loader(data, batch=64, epochs=3):
        job.report(loss=learn(batch))

Only the standard library is needed, and no service: a script that runs by itself behaves as a job that is never interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gantline.train.batches import BatchPlan
from gantline.train.hooks import Hook, InterferenceVote, NoiseScaleBatch, ScheduledResize
from gantline.train.job import STOPPED, Job
from gantline.train.loops import Batch
from gantline.train.membership import Membership
from gantline.train.noise import NoiseMeter, NoiseScale
from gantline.train.rates import RULES, BatchState
from gantline.train.sampler import Order, Position, Sampler
from gantline.train.store import CheckpointError

__all__ = [
    "RULES",
    "STOPPED",
    "Batch",
    "BatchPlan",
    "BatchState",
    "CheckpointError",
    "Hook",
    "InterferenceVote",
    "Job",
    "Membership",
    "NoiseMeter",
    "NoiseScale",
    "NoiseScaleBatch",
    "Order",
    "Position",
    "Sampler",
    "ScheduledResize",
    "join",
]


def join(
    folder: str | Path = "checkpoint",
    *,
    sum_over_ranks: Callable[[list[float]], list[float]] | None = None,
    hooks: Sequence[Hook] = (),
    save_every: float = 0.0,
    interval: float = 1.0,
) -> Job:
    """Become the job that this process was started as, or one of its own.

    ``folder`` holds checkpoints where the runner names no folder. ``sum_over_ranks`` sums a list of numbers over all ranks; gangs give it,
    so that all ranks save and leave at the same step (`gantline.train.torch.sum_over_ranks` does it by all-reduce).
    ``save_every`` is in seconds; 0 saves only when asked to, and at the end. ``interval`` is how often the service is told, in seconds.
    """
    return Job(Membership.read(folder=folder), sum_over_ranks=sum_over_ranks, hooks=hooks, save_every=save_every, interval=interval)
