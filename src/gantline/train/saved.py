"""Where a job is, as JSON: what a checkpoint keeps of it beside the model, and what new ranks of a gang receive."""

from __future__ import annotations

import atexit
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gantline.train.gangs import Gang
from gantline.train.hooks import Hook
from gantline.train.membership import Membership
from gantline.train.orders import Sum
from gantline.train.rates import NoiseMeter
from gantline.train.sampler import Position
from gantline.train.store import MODEL, Checkpoints
from gantline.train.switch import Switchboard
from gantline.train.training import FLUSH, Training


def progress_json(job: Training, hooks: Sequence[Hook]) -> dict[str, object]:
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


# A job and its checkpoints: how the model is kept, when it is saved, what is loaded.


@dataclass(frozen=True, slots=True)
class Kept:
    """How a job's model is kept, and handed over."""

    save: Callable[[Path], object] | None = None
    load: Callable[[Path], object] | None = None
    pack: Callable[[], bytes] | None = None
    unpack: Callable[[bytes], object] | None = None
    loops: bool = False  # whether loops save by themselves


class SavedTraining(Training):
    """A rank that can save, be restored, and go on as another rank."""

    def __init__(
        self,
        member: Membership,
        gang: Gang | None,
        sum_over_ranks: Sum | None,
        hooks: Sequence[Hook],
        save_every: float,
        interval: float,
    ) -> None:
        self.board = Switchboard(member.home)
        self.after_switch: list[Callable[[], object]] = []
        self.hooks = list(hooks)
        self.kept = Kept()
        self.joins = member.is_joining
        self.unconfirmed = False  # a new gang that is not reported yet
        self._saved: float | None = None
        self.store = Checkpoints(member.folder, member.epoch)
        kept = {} if self.joins else self.store.state()
        check_version(kept, self.store)
        super().__init__(member, gang, sum_over_ranks, save_every, interval)
        if kept:
            resume(self, self.hooks, kept)
            self._saved = self.done
            self.report(step=self.step, done=self.done, saved=self._saved)
        atexit.register(self.close)

    @property
    def folder(self) -> Path:
        """Where checkpoints are; the same for all incarnations of the job."""
        return self.member.folder

    def become(self, member: Membership) -> None:
        """Go on as another rank, or under another epoch."""
        self.member = replace(member, is_joining=False)
        self.store = Checkpoints(member.folder, member.epoch)
        self.orders.become(self.member)
        self.unconfirmed = True

    def restore(self, load: Callable[[Path], object]) -> bool:
        """Call ``load`` with the path that the save function wrote to; False where the job begins from nothing."""
        self.is_restored = True
        newest = self.store.newest()
        if newest is None or not (newest / MODEL).exists():
            return False
        load(newest / MODEL)
        return True

    is_restored = False

    @property
    def must_restore(self) -> bool:
        """Whether going on would train new weights from where old ones were."""
        newest = self.store.newest()
        return not self.is_restored and newest is not None and (newest / MODEL).exists()

    def checkpoint(self, save: Callable[[Path], object] | None = None) -> None:
        """Save now: everything or nothing, and only then acknowledged. Inside a loop the step in hand counts as done: call it last.

        The first rank writes; a gang waits for it, so that no rank leaves before the checkpoint is whole.
        """
        failed: Exception | None = None
        if self.rank == 0:
            try:
                self.store.write(self.step, self.where_it_is(), save or self.kept.save)
            except Exception as error:
                failed = error
                self._say_why()
        (failures,) = self.sum([0.0 if failed is None else 1.0])
        if failed is not None:
            raise failed
        if failures:
            raise RuntimeError("the first rank could not save; its log says why")
        self._saved = self.done
        self.orders.saved({"step": self.step, "done": self.done, "saved": self.done})

    def _say_why(self) -> None:
        """Print the error before other ranks learn of it: the first rank that ends makes the keeper end all others."""
        if self.world > 1:
            traceback.print_exc()
            sys.stderr.flush()

    def where_it_is(self) -> dict[str, object]:
        """All that the job needs to go on from here, but the model."""
        return progress_json(self, self.hooks)

    def finish(self) -> None:
        """The loop has ended: save the result and report it."""
        if self.kept.loops:
            self.checkpoint()
        self.tell_progress(time.monotonic())
        if self.orders.wire:
            self.orders.wire.flush(FLUSH)
