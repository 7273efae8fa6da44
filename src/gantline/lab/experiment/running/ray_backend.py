"""Runs on the nodes of a Ray cluster: files go there and results come back through Ray, so that no folder need be shared.

Ray runs a task again, a few times, when its worker or its node dies. Every node has the same Gantline as the sweep; a result of another
one is refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gantline.core.errors import UsageError
from gantline.lab.experiment.digest import file_digest, program_digest
from gantline.lab.experiment.records import FAILED, Outcome
from gantline.lab.experiment.running.shared_inputs import files_of, pack, perform_here, take_in
from gantline.lab.experiment.running.tasks import Task
from gantline.live.runners.ray.connection import Handle, connect, load

_AGAIN = 3  # times that a task is run again because its worker has died
_LOOK = 1.0  # seconds between looks at what takes too long


class OnRay:
    """As many runs at a time as the cluster has processors, or as there shall be workers."""

    def __init__(self, address: str, workers: int | None = None, limit: float = math.inf) -> None:
        if workers is not None and workers < 1:
            raise UsageError(f"{workers} workers cannot run anything", where="--workers", fix="give at least 1")
        self.address, self.workers, self.limit = address, workers, limit

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        if not tasks:
            return  # all results are there: no cluster is needed
        ray = load()
        connect(self.address)
        try:
            yield from self._run(ray, list(tasks))
        finally:
            ray.shutdown()  # which ends what still runs

    def _run(self, ray: Handle, left: list[Task]) -> Iterator[Outcome]:
        perform = ray.remote(perform_there).options(num_cpus=1, max_retries=_AGAIN)
        room = self.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        sent: dict[str, Handle] = {}  # files that the cluster has, by their content
        under_way: dict[Handle, tuple[Task, float]] = {}
        left.reverse()
        while left or under_way:
            while left and len(under_way) < room:
                task = left.pop()
                paths = files_of(task.setting)
                archives = [_sent(ray, sent, Path(path)) for path in paths]
                under_way[perform.remote(task.to_dict(), program_digest(), paths, *archives)] = task, time.monotonic()
            done, _ = ray.wait(list(under_way), num_returns=1, timeout=_LOOK)
            for one in done or self._late(under_way):
                task, _ = under_way.pop(one)
                yield self._outcome(ray, one, task, is_late=not done)

    def _late(self, under_way: dict[Handle, tuple[Task, float]]) -> list[Handle]:
        return [one for one, (_, began) in under_way.items() if time.monotonic() - began > self.limit]

    def _outcome(self, ray: Handle, one: Handle, task: Task, is_late: bool) -> Outcome:
        if is_late:
            ray.cancel(one, force=True)
            return Outcome(task.hash, FAILED, f"took longer than {self.limit:g} s")
        try:
            line, archive = ray.get(one)
        except ray.exceptions.RayError as error:
            return Outcome(task.hash, FAILED, f"the cluster could not run it: {str(error).strip().splitlines()[-1]}")
        if archive:
            take_in(archive, Path(task.folder))
        return Outcome.read(line)


def perform_there(task: dict[str, object], program: str, paths: list[str], *archives: bytes) -> tuple[str, bytes]:
    """On a node of the cluster."""
    read = Task.read(task)
    if program != program_digest():
        why = "the node that it came to has another version of Gantline: install the same on all nodes"
        return Outcome(read.hash, FAILED, why).to_line(), b""
    outcome, archive = perform_here(read, paths, archives)
    return outcome.to_line(), archive


def _sent(ray: Handle, sent: dict[str, Handle], path: Path) -> Handle:
    digest = file_digest(path)
    if digest not in sent:
        sent[digest] = ray.put(pack(path))
    return sent[digest]
