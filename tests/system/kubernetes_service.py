"""``gantline up --executor kubernetes`` as a process that tests start, kill and start again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.live import chaos_job
from tests.system.kubernetes import KubernetesCluster, wait_for

from gantline.live.service.client import Client
from gantline.live.service.home import Home

_BRISK = ("--min-run", "0.5", "--grace", "2", "--turn", "1", "--quantum", "1")  # jobs of seconds stop each other as those of hours do


class Service:
    """``gantline up``, again and again, with one home."""

    def __init__(self, folder: Path, cluster: KubernetesCluster, policy: str = "las", kubeconfig: Path | None = None) -> None:
        self.folder, self.home = folder, Home(folder / "home")
        own = {"kubeconfig": kubeconfig or cluster.kubeconfig, "image": "any", "checkpoints": folder / "saved"}
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
        self.command += ["--policy", policy, "--run-as", "service", *_BRISK, *options]
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

    def peak_megabytes(self) -> float:
        """The most memory that it has used."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

    def submit(self, chance: random.Random, shape: str = "", longer: int = 1) -> str:
        """One device, two of a node, or a gang over two nodes of which the first rank does the work."""
        shape = shape or chance.choice(("1", "1", "2", "gang"))
        steps = longer * chance.randint(60, 300)
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


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
