"""A service on Kubernetes that is killed at random instants: no job is lost, none runs twice, no saved step is made again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime import chaos_job
from tests.runtime.specs import ENDED
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for

from gantline.core.errors import GantlineError
from gantline.runtime.replay import replay_store
from gantline.runtime.store import SqlStore
from gantline.service.client import Client
from gantline.service.home import Home

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
JOBS = 30
NODES = [node(f"n{number}", cpus=2) for number in range(6)]
_BRISK = ("--min-run", "0.5", "--grace", "2", "--turn", "1", "--quantum", "1")  # jobs of seconds stop each other as those of hours do


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path / "kubernetes") as found:
        found.start_kubelets(NODES)
        yield found
        empty(found)


class Service:
    """``gantline up``, again and again, with one home."""

    def __init__(self, folder: Path, cluster: KubernetesCluster) -> None:
        self.folder, self.home = folder, Home(folder / "home")
        own = {"kubeconfig": cluster.kubeconfig, "image": "any", "checkpoints": folder / "saved"}
        options = [word for name, value in own.items() for word in (f"--{name}", str(value))]
        self.command = [
            sys.executable,
            "-m",
            "gantline",
            "up",
            "--home",
            str(self.home.path),
            "--executor",
            "kubernetes",
            "--devices",
            "cpu",
        ]
        self.command += ["--policy", "las", "--run-as", "service", *_BRISK, *options]
        self.starts: list[tuple[float, float]] = []  # until it answered: seconds, and CPU seconds of them

    def start(self) -> None:
        self.home.address.unlink(missing_ok=True)
        began = time.monotonic()
        with open(self.folder / "service.out", "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: self.home.announced() is not None or self.process.poll() is not None, "service")
        assert self.home.announced() is not None, (self.folder / "service.out").read_text()[-2000:]
        self.starts.append((time.monotonic() - began, _cpu_seconds(self.process.pid)))
        self.client = Client(home=self.home.path, timeout=60.0)

    def kill(self) -> None:
        self.client.close()
        assert self.process.poll() is None, (self.folder / "service.out").read_text()[-2000:]
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def submit(self, number: int, chance: random.Random) -> str:
        """One device, two of a node, or a gang over two nodes of which the first rank does the work."""
        shape = chance.choice(("1", "1", "2", "gang"))
        steps = chance.randint(60, 300)
        work = f"exec {sys.executable} -S -E {chaos_job.__file__} {self.folder} {steps}"
        wait = f'trap "exit 143" TERM; until grep -qs "^$GANTLINE_JOB_ID $GANTLINE_EPOCH$" {self.folder}/done; do sleep 0.05; done'
        spec = {
            "resources": {"gpus": 3 if shape == "gang" else int(shape)},
            "checkpoint": {"grace": 5},
            "retry": {"max": 50, "backoff": 0.1},
        }
        spec |= {"processes": "nodes"} if shape == "gang" else {}
        line = f"if [ $RANK = 0 ]; then {work}; else {wait}; fi"
        (made,) = self.client.submit(["/bin/sh", "-c", line], **spec)
        return str(made)


@pytest.mark.timeout(3_600)
def test_killed_at_random_instants(cluster: KubernetesCluster, tmp_path: Path, long: bool) -> None:
    kills, chance = 50 if long else 5, random.Random(23)
    service = Service(tmp_path, cluster)
    service.start()
    known: list[str] = []
    for number in range(kills):
        while len(known) < JOBS * (number + 1) // kills:
            known.append(service.submit(len(known), chance))
        time.sleep(chance.uniform(0.0, 3.0))
        service.kill()
        service.start()

    def all_over() -> bool:
        try:
            return all(job["state"] in ENDED and not job["devices"] for job in service.client.jobs())
        except GantlineError:
            return False

    wait_for(all_over, "end of all jobs", 400)
    wait_for(lambda: not cluster.pods(), "removal of all pods")
    service.client.shutdown(drain=True)
    service.process.wait(60)

    def told(name: str) -> list[list[str]]:
        path = tmp_path / name
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    assert not told("breaches"), f"a device was used twice: {told('breaches')}"
    twice = [one for one, count in Counter(tuple(line[:2]) for line in told("began")).items() if count > 1]
    assert not twice, f"incarnations began twice: {twice}"
    for path in (tmp_path / "saved").glob("*/steps"):
        steps = [int(line.split()[1]) for line in path.read_text().splitlines()]
        assert steps == sorted(set(steps)), f"a saved step was lost, or made by two at once: {path} {steps}"
    store = SqlStore.open(service.home.store, write=False)
    states = {job["id"]: job["state"] for job in store.jobs()}
    replayed = replay_store(store)
    store.close()
    assert {id: states.get(id) for id in known} == dict.fromkeys(known, "succeeded")
    assert replayed.difference is None
    slowest, cpu = max(service.starts)
    began = len(told("began"))
    print(f"{kills} kills, {began} incarnations of {JOBS} jobs; the service answers after {slowest:.1f} s at most ({cpu:.1f} CPU s)")


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
