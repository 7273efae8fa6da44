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

from gantline.train.gangs import Gang, SocketGang
from gantline.train.hooks import Hook, InterferenceVote, NoiseScaleBatch, ScheduledResize
from gantline.train.job import Batch, Job
from gantline.train.membership import Membership
from gantline.train.rates import RULES, BatchState, NoiseMeter, NoiseScale
from gantline.train.sampler import BatchPlan, Order, Position, Sampler
from gantline.train.store import CheckpointError
from gantline.train.training import STOPPED, Training

__all__ = [
    "RULES",
    "STOPPED",
    "Batch",
    "BatchPlan",
    "BatchState",
    "CheckpointError",
    "Gang",
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
    "SocketGang",
    "Training",
    "join",
]


def join(
    folder: str | Path = "checkpoint",
    *,
    gang: Gang | None = None,
    sum_over_ranks: Callable[[list[float]], list[float]] | None = None,
    hooks: Sequence[Hook] = (),
    save_every: float = 0.0,
    interval: float = 1.0,
) -> Job:
    """Become the job that this process was started as, or one of its own.

    ``folder`` holds checkpoints where the runner names no folder. ``gang`` is how the ranks of a job communicate
    (`SocketGang`, or `gantline.train.torch.ProcessGroup`), so that all of them save and leave at the same step, and so that the
    gang can change without a stop. ``sum_over_ranks``, a function that sums a list of numbers over all ranks, is enough for the former.
    ``save_every`` is in seconds; 0 saves only when asked to, and at the end. ``interval`` is the time between reports, in seconds.
    """
    member = Membership.read(folder=folder)
    return Job(member, gang=gang, sum_over_ranks=sum_over_ranks, hooks=hooks, save_every=save_every, interval=interval)
