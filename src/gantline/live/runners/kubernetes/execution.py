"""Carries out orders as gangs of pods: what each order means for the gang that is there.

It trusts no order: one of an older epoch is answered with what is known; a job never runs twice, and a device is never given to two that
are not mates, whatever the orders say. Such an order waits until it may be carried out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gantline.core.inputs import Fault
from gantline.engine.executor import News, Order, Verb
from gantline.live.runners.kubernetes.gang_lifecycle import GangEnd, PodGang
from gantline.live.runners.kubernetes.pods_and_nodes import identity_of
from gantline.live.runners.kubernetes.workload_lifecycle import WorkloadLifecycle
from gantline.live.runners.runner_context import Task


@dataclass
class PodExecution(WorkloadLifecycle):
    """One order at a time, in the runner's thread."""

    waiting: dict[str, Order] = field(default_factory=dict)  # orders that may not be carried out yet, by job
    generation: str = ""  # the present life of the store

    def begin(self, adopted: Iterable[PodGang]) -> None:
        """Take over what was found; gangs of jobs that the engine has forgotten end."""
        for gang in adopted:
            row = self.contact.row_of(gang.job)
            gang.row, self.gangs[gang.job] = -1 if row is None else row, gang
            if gang.over:
                continue
            self.live[gang.job] = gang
            self.note_workload(gang)
            gang.since = time.monotonic()
            gang.seen = {name for name in gang.names if name in self.cache.pods}
            if gang.generation != self.generation:  # an earlier life of the store has begun it
                gang.is_stopping = True
            elif row is None:
                gang.is_stopping, gang.grace = True, 1
            elif not gang.seen and gang.is_bound and not gang.is_stopping and not gang.workload:
                gang.verdict = GangEnd(News.FAILED, None, "its pods were gone when the service came back", Fault.ENGINE)
            self.settle(gang)
        for pod in list(self.cache.pods.values()):
            self.clear(pod)

    def carry_out(self, order: Order) -> None:
        """Do what an order says, or say what is known where it is older than that."""
        task = self.contact.task(order.row)
        known = self.gangs.get(task.job)
        if known is not None and known.row < 0:
            known.row = order.row
        if known is not None and (order.epoch < known.epoch or (order.onto == known.epoch and known.over)):
            self.repeat(known)
        elif known is None or order.epoch > known.epoch:
            self._start(order, task) if order.verb is Verb.START else self._never(order, task)
        elif order.verb is Verb.START:
            self.repeat(known)
            if known.order is None and not known.over:
                known.order = order
                self.settle(known)
        elif known.over or known.is_stopping:
            self.repeat(known)
        else:
            known.believed = order.done
            self._end(known)

    def room_was_made(self) -> None:
        for job in list(self.waiting):
            if (order := self.waiting.get(job)) is not None:
                self.carry_out(order)

    def fail(self, devices: frozenset[int]) -> None:
        """Devices are declared lost: what is on them is over."""
        for gang in list(self.live.values()):
            if devices & set(gang.devices) and not gang.is_leaving:
                gang.verdict, gang.grace = GangEnd(News.FAILED, None, "its node was declared lost", Fault.NODE), 1
                self.settle(gang)

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _start(self, order: Order, task: Task) -> None:
        """Begin a new gang, unless something is in its way."""
        known, launch = self.gangs.get(task.job), task.launch
        self.waiting[task.job] = order
        if known is not None and not known.over:
            self._end(known)
            return
        if self._is_in_the_way(order, task.job):
            return
        del self.waiting[task.job]
        gang = PodGang(task.job, order.epoch, self._folder(task.job, order.epoch), order.row, order.devices, order=order)
        gang.workload, gang.generation = launch.object, self.generation
        gang.places = self.contact.by_node(order.devices)
        if not gang.places and order.node >= 0:
            gang.places = {self.contact.cluster().nodes[order.node].name: []}
        gang.resumed = order.done if launch.resumes else (0.0 if math.isnan(task.saved) else task.saved)
        gang.resumes, gang.stopped_exit, gang.since = launch.resumes, launch.stopped_exit, time.monotonic()
        self.gangs[task.job] = self.live[task.job] = gang
        self.note_workload(gang)
        gang.write_order()
        self.settle(gang)

    def _is_in_the_way(self, order: Order, job: str) -> bool:
        """Whether these devices or its object have a gang that is no mate, or something of ours is left on a node that came back."""
        wanted = set(order.devices)
        if any(one.job != job and one.row not in order.mates and wanted & set(one.devices) for one in self.live.values()):
            return True
        title = self.contact.task(order.row).launch.object
        if title and any(one.workload == title for one in self.live.values()):
            return True  # its object was submitted anew, and still runs as it was
        mates = {one.job for one in self.live.values() if one.row in order.mates}
        for node, places in self.contact.by_node(order.devices).items():
            for pod in self.cache.ours_on(node):
                owner = self.job_of_workload.get(pod.owner, "") if pod.owner else (identity_of(pod.name) or ("",))[0]
                if owner not in mates and set(pod.places) & set(places):
                    return True
        return False

    def _end(self, gang: PodGang) -> None:
        if not gang.is_leaving:
            gang.is_stopping = True
            gang.write_order()
        self.settle(gang)

    def _never(self, order: Order, task: Task) -> None:
        """An order to stop a gang that never came: it is remembered, so that a late start is refused."""
        known = self.gangs.get(task.job)
        if known is not None and not known.over:
            self.waiting[task.job] = order
            self._end(known)
            return
        self.waiting.pop(task.job, None)
        ghost = PodGang(task.job, order.epoch, self._folder(task.job, order.epoch), order.row)
        ghost.resumed = ghost.believed = 0.0 if math.isnan(task.saved) else task.saved
        ghost.verdict, ghost.generation = GangEnd(News.STOPPED), self.generation
        ghost.write_end()
        self.gangs[task.job] = ghost
        self.repeat(ghost)

    def _folder(self, job: str, epoch: int) -> Path:
        return self.home / "jobs" / job / str(epoch)
