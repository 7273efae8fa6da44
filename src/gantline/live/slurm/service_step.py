"""At most one service schedules an allocation: it holds a step of a well-known name, which ends with the service, however that ends.

The step is `cat`: its input is closed when the service is gone. Its name says which home the service has, so that a service which is
started again need not wait for the end of the step that it had. Of two that start at once the one with the older step stays.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import NoReturn

from gantline.core.errors import RefusedError, UnreachableError
from gantline.live.local.home_runner import home_mark
from gantline.live.slurm.commands import WHERE, ask
from gantline.live.slurm.steps import srun_environment

_NAME = "gantline-service"
_PATIENCE = 3.0  # seconds in which the step of a service that was killed ends
_START = 30.0  # seconds that Slurm has to start a step
_LOOK = 0.1


class ServiceStep:
    """A service's side of it."""

    def __init__(self, job: str, home: Path) -> None:
        self.job = job
        self._home = home_mark(home)
        self._name = f"{_NAME}.{self._home}.{socket.gethostname()}.{os.getpid()}"
        self._step: subprocess.Popen[bytes] | None = None

    def take(self) -> None:
        """Hold the allocation, or be refused with the name of the service that does."""
        end = time.monotonic() + _PATIENCE
        while holder := self._other():
            if time.monotonic() > end:
                self._refuse(holder)
            time.sleep(_LOOK)
        self._begin()
        end = time.monotonic() + _START
        while self._name not in (held := self._held()):
            if time.monotonic() > end:
                self.leave()
                what, fix = f"Slurm starts no step in allocation {self.job}", f"try srun --jobid={self.job} --overlap hostname"
                raise UnreachableError(what, where=WHERE, fix=fix)
            self.prolong()
            time.sleep(_LOOK)
        if (holder := self._other()) in held[: held.index(self._name)]:
            self.leave()
            self._refuse(holder)

    def _other(self) -> str:
        """The step of another home's service; empty: there is none."""
        return next((name for name in self._held() if not name.startswith(f"{_NAME}.{self._home}.")), "")

    def _refuse(self, holder: str) -> NoReturn:
        host, _, pid = holder.split(".", 2)[2].rpartition(".")
        what = f"another service (process {pid} on {host}) schedules allocation {self.job} already"
        raise RefusedError(what, where=WHERE, fix="stop that one, or use an allocation of your own")

    def prolong(self) -> None:
        """Hold it again, should the step have ended: its node may be lost."""
        if self._step is not None and self._step.poll() is not None:
            self._begin()

    def leave(self) -> None:
        """Give it up."""
        if self._step is not None and self._step.stdin is not None:
            self._step.stdin.close()
            try:
                self._step.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._step.kill()
                self._step.wait()
            self._step = None

    def _held(self) -> list[str]:
        """The names of steps by which services hold the allocation, the oldest first."""
        listed = ask("squeue", "--noheader", "--steps", f"--jobs={self.job}", "--Format=StepID:40,StepName:200").splitlines()
        steps = [
            (int(step.rpartition(".")[2]), name) for step, _, name in (line.strip().partition(" ") for line in listed) if _NAME in name
        ]
        return [name.strip() for _, name in sorted(steps)]

    def _begin(self) -> None:
        quiet, env = subprocess.DEVNULL, srun_environment()
        command = ("srun", f"--jobid={self.job}", "--overlap", "--mpi=none", "--mem=0", "--quiet", "--nodes=1", "--ntasks=1", "--chdir=/")
        self._step = subprocess.Popen(
            (*command, f"--job-name={self._name}", "cat"),
            stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env=env, start_new_session=True,
        )  # fmt: skip
