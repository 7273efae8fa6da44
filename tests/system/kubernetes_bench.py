"""A runner of a real API server under test: jobs are shell loops that save, and end when a file says so."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from tests.live.folder_bench import say_end
from tests.live.specs import contact_of
from tests.system.kubernetes import KubernetesCluster

from gantline.engine.executor import Order, Report
from gantline.lab.conformance.runner import ReportAndEnding
from gantline.live.jobs.launch import Launch
from gantline.live.runners.kubernetes.runner import KubernetesRunner
from gantline.live.runners.runner_context import RunnerContext
from gantline.live.runners.runner_events import NodeNews, Present, RunnerEvents

JOB = """
trap 'touch $GANTLINE_CHECKPOINT/left; exit 15' TERM
touch $GANTLINE_CHECKPOINT/up
echo rank $RANK of $WORLD_SIZE on node $NODE_RANK of $NNODES
while [ ! -e $GANTLINE_CHECKPOINT/end ]; do sleep 0.05; done
exit $(cat $GANTLINE_CHECKPOINT/end)
"""


def context(cluster: KubernetesCluster, home: Path, **options: str) -> RunnerContext:
    """A service with slots of CPUs on a cluster."""
    own = {"kubeconfig": str(cluster.kubeconfig), "image": "any", "checkpoints": str(home / "checkpoints")}
    return RunnerContext(home, "cpu", {**own, **options}, "http://127.0.0.1:1")


class KubernetesBench:
    """One runner after another, on one cluster, with one home."""

    def __init__(self, cluster: KubernetesCluster, home: Path, launch: Launch | None = None, **options: str) -> None:
        self.cluster, self.home = cluster, home
        self.launch = launch or Launch((JOB,), shell=True, processes=0, resumes=True, grace=10.0)
        self.checkpoints, self.context = home / "checkpoints", context(cluster, home, **options)
        self.attach()

    def attach(self) -> list[Present]:
        self._reports: list[ReportAndEnding] = []
        self.news: list[NodeNews] = []
        self._new: deque[Report] = deque()
        self.runner = self.executor = KubernetesRunner.open(self.context)
        present = list(self.runner.adopt())
        self.runner.attach(contact_of(self.runner, lambda row: self.launch, self._receive))
        return present

    def _receive(self, events: RunnerEvents) -> None:
        self.news += events.nodes
        self._reports += events.reports
        self._new += (report for report, _ in events.reports)

    # --- of an executor -------------------------------------------------------------------------------------------------
    def now(self) -> float:
        return time.time()

    def finish(self, row: int) -> None:
        self._say(row, 0)

    def receive(self) -> list[Report]:
        time.sleep(0.05)
        return [self._new.popleft() for _ in range(len(self._new))]

    # --- of a runner ----------------------------------------------------------------------------------------------------
    def send(self, order: Order) -> None:
        self.runner.send(order, 0.0)

    def reports(self) -> list[ReportAndEnding]:
        return list(self._reports)

    def end(self, code: int) -> None:
        self._say(0, code)

    def is_up(self) -> bool:
        return (self.checkpoints / "job0" / "up").exists()

    def has_saved(self) -> bool:
        return (self.checkpoints / "job0" / "left").exists()

    def begin_again(self) -> list[Present]:
        self.runner.close()
        return self.attach()

    def close(self) -> None:
        self.runner.close()

    def _say(self, row: int, code: int) -> None:
        say_end(self.checkpoints / f"job{row}", code)
