"""NVIDIA's multi-process service, where it is there: jobs that share a GPU run side by side, each with its part of the processors.

Every GPU that is cut in slices has a daemon of its own, so that a crash concerns the jobs on that GPU only. One more daemon serves jobs
that have parts of whole GPUs; without it the driver lets them take turns of milliseconds, which needs nothing from us. Daemons are started
with the first job that needs them, outlive the service as jobs do, and are ended when the jobs have been drained.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from gantline.core.errors import RefusedError
from gantline.live.local.files import children_of, started_at

CONTROL = "nvidia-cuda-mps-control"
_LONGEST_PATH = 107  # of a socket, in bytes
_NAME = 16  # letters of a GPU's name that tell it from others
_PATIENCE = 30.0  # seconds for the control program to answer
_FAULT = re.compile(r"\b(fatal|faults?|exceptions?)\b", re.IGNORECASE)  # lines of its log that report the end of clients


def is_present() -> bool:
    """Whether the control program is on the path."""
    return shutil.which(CONTROL) is not None


class Mps:
    """The daemons of this machine; their pipes and logs lie in the home."""

    def __init__(self, home: Path) -> None:
        self.home = home / "mps"
        self.several_users = False  # whether jobs run under accounts of their own
        self._daemons: dict[str, Daemon] = {}

    def share(self, fraction: float) -> dict[str, str]:
        """The variables that give a process that part of whole GPUs; none where there is no such service."""
        daemon = self._daemon("")
        if not is_present() or daemon.begin(self.several_users):
            return {}
        return {**daemon.variables, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{max(1, round(100 * fraction))}"}

    def serve(self, gpu: str) -> dict[str, str]:
        """The variables by which a process on a slice of that GPU finds the daemon, which is started where it does not run."""
        daemon = self._daemon(gpu)
        if why := daemon.begin(self.several_users):
            raise RefusedError(f"the multi-process service of GPU {gpu} cannot be started: {why}", where=str(daemon.folder))
        return daemon.variables

    def crashes(self, gpus: Iterable[str]) -> dict[str, str]:
        """Those of these GPUs, on which jobs run, whose daemon has crashed since the last look, with what happened; it is started anew."""
        found = {}
        for gpu in gpus:
            daemon = self._daemon(gpu)
            if why := daemon.crash():
                daemon.end()
                found[gpu] = why
                daemon.begin(self.several_users)  # where that fails, the next start of a job says why
        return found

    def quit(self) -> None:
        """End all daemons that run, also those that an earlier service has started."""
        for folder in self.home.iterdir() if self.home.is_dir() else ():
            Daemon(folder, "").end()

    def _daemon(self, gpu: str) -> Daemon:
        if gpu not in self._daemons:
            self._daemons[gpu] = Daemon(self.home / (gpu[:_NAME] or "shared"), gpu)
        return self._daemons[gpu]


class Daemon:
    """A control daemon and its servers, which serve one GPU; without a name, all of them."""

    def __init__(self, folder: Path, gpu: str) -> None:
        self.folder, self.gpu = folder, gpu
        self._servers: dict[int, int] = {}  # when each was started
        self._read = self._log_size()  # bytes of the server's log that have been looked at: what an earlier service saw is not news

    @property
    def variables(self) -> dict[str, str]:
        """What a client is told. Daemons count only the GPUs that they serve."""
        found = {"CUDA_MPS_PIPE_DIRECTORY": str(self.folder)}
        return found | ({"CUDA_VISIBLE_DEVICES": "0" if self.gpu.isdigit() else self.gpu} if self.gpu else {})

    @property
    def pid(self) -> int:
        """The process of the daemon; 0: it does not run."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.folder / f"{CONTROL}.pid").read_text(encoding="ascii"))
            if CONTROL.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return 0

    def begin(self, several_users: bool) -> str:
        """Start it unless it runs; why it cannot be started, or nothing."""
        if not self.pid:
            if not is_present():
                return f"{CONTROL} is not on the path"
            if len(os.fsencode(self.folder / "control")) > _LONGEST_PATH:
                return f"the path {self.folder} is too long for its sockets; choose a shorter --home"
            self.folder.mkdir(mode=0o711, parents=True, exist_ok=True)
            self._read, self._servers = self._log_size(), {}
            try:
                how = ["-d", "-multiuser-server"] if several_users else ["-d"]
                made = subprocess.run([CONTROL, *how], env=self._env(), check=False, timeout=_PATIENCE, capture_output=True, text=True)
            except (OSError, subprocess.SubprocessError) as error:
                return str(error)
            end = time.monotonic() + _PATIENCE
            while not made.returncode and not self.pid and time.monotonic() < end:
                time.sleep(0.01)  # the daemon writes its number after the program has returned
            if made.returncode or not self.pid:
                return (made.stderr or made.stdout).strip() or f"{CONTROL} ended with exit code {made.returncode}"
        return ""

    def crash(self) -> str:
        """What has ended its clients since the last look; nothing where they go on."""
        pid = self.pid
        if not pid:
            return "its control daemon has ended"
        there = children_of(pid)
        gone = [server for server in self._servers if server not in there]
        if gone:
            return f"its server {gone[0]} has ended"
        self._servers |= {server: started_at(server) for server in there}
        with contextlib.suppress(OSError), open(self.folder / "server.log", encoding="utf-8", errors="replace") as log:
            log.seek(self._read)
            lines = log.read().splitlines()
            self._read = log.tell()
            return next((line.strip() for line in lines if _FAULT.search(line)), "")
        return ""

    def end(self) -> None:
        """End it and its servers: by its own command, or by force where it does not obey."""
        pid, left = self.pid, dict(self._servers)
        if pid:
            left |= {one: started_at(one) for one in (*children_of(pid), pid)}
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run([CONTROL], input=b"quit -t 1\n", env=self._env(), check=False, timeout=_PATIENCE, capture_output=True)
        for one, since in left.items():
            if started_at(one) == since:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(one, signal.SIGKILL)
        with contextlib.suppress(OSError):
            (self.folder / f"{CONTROL}.pid").unlink()

    def _log_size(self) -> int:
        with contextlib.suppress(OSError):
            return (self.folder / "server.log").stat().st_size
        return 0

    def _env(self) -> dict[str, str]:
        seen = {"CUDA_VISIBLE_DEVICES": self.gpu} if self.gpu else {}
        return {**os.environ, **seen, "CUDA_MPS_PIPE_DIRECTORY": str(self.folder), "CUDA_MPS_LOG_DIRECTORY": str(self.folder)}
