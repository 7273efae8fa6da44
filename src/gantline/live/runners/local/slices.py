"""Slices of this machine's GPUs and CPU slots: what the processes on them are told and held to.

A rank on a slice of its own has the slice's part of the GPU's processors and memory, and its cores. A job with another number of processes
than slices has all of its slices in each process: one process has the sum of them, several divide it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gantline.core.errors import RefusedError
from gantline.core.slices import is_slice, whole_and_percent
from gantline.live.runners.local.devices import Machine, gpus_found
from gantline.live.runners.local.files import children_of, started_at
from gantline.live.runners.local.incarnation import Incarnation

CORES = "GANTLINE_CORES"  # the cores that a process is bound to when it starts, with commas between them
_MB = 1024  # per GB
_VOLTA = 7.0  # compute capability since which the service knows parts of processors


class Slice(NamedTuple):
    """One slice."""

    gpu: str | None  # what CUDA calls its GPU; None: it is a slice of a CPU slot
    percent: int
    memory: float  # GB; 0: not known
    cores: tuple[int, ...]


def slice_at(machine: Machine, name: str, place: int) -> Slice | None:
    """The slice at that place of a node; None: the device there is a whole one, or gone."""
    node = next((node for node in machine.cluster.nodes if node.name == name), None)
    percent = 100 if node is None else whole_and_percent(node.type)[1]
    if node is None or percent == 100:
        return None
    cores = machine.cores.get(name, ())
    return Slice(machine.cuda_of(name, place), percent, node.device_memory, cores[place] if place < len(cores) else ())


def by_rank(slices: Sequence[Slice], count: int, serve: Callable[[str], Mapping[str, str]], part: float = 1.0) -> list[dict[str, str]]:
    """What each of so many ranks is told of the slices of its job, of which the job has that part; nothing where it has none.

    `serve` returns the variables by which a process finds what serves slices of a GPU.
    """
    if not slices:
        return [{} for _ in range(count)]
    if count == len(slices):
        return [_variables([one], part, serve) for one in slices]
    return [_variables(slices, part / count, serve)] * count


def _variables(slices: Sequence[Slice], part: float, serve: Callable[[str], Mapping[str, str]]) -> dict[str, str]:
    cores = sorted({core for one in slices for core in one.cores})
    found = {CORES: ",".join(map(str, cores))} if cores else {}
    gpus = {one.gpu for one in slices}
    if len(gpus) > 1:
        fix = "ask for slices of one GPU (topology: {within: gpu, mode: required}), or a process for each (processes: gpus)"
        raise RefusedError("a process can use slices of one GPU only", where="resources", fix=fix)
    (gpu,) = gpus
    if gpu is not None:
        found |= serve(gpu)
        found["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(max(1, int(sum(one.percent for one in slices) * part)))
        limit = int(sum(one.memory for one in slices) * part * _MB)
        found |= {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={limit}M"} if limit else {}
    return found


def check_slices(machine: Machine) -> None:
    """Refuse slices of GPUs that this machine cannot cut."""
    kinds = {whole_and_percent(node.type) for node in machine.cluster.nodes if node.name in machine.cuda}
    sliced = {whole for whole, percent in kinds if percent < 100}
    if not sliced:
        return
    found = gpus_found()
    for name in sorted(whole for whole, percent in kinds if percent == 100 and whole in sliced):
        if (there := sum(gpu.type == name for gpu in found)) < len(machine.gpus_of(name)):
            what = f"'{name}' is declared whole and in slices, and {there} such GPU{'' if there == 1 else 's'} are found"
            raise RefusedError(what, where="--devices", fix="a GPU is either whole or in slices: declare it once")
    old = [gpu for gpu in found if gpu.uuid in machine.gpus and 0 < gpu.capability < _VOLTA]
    if old:
        what = f"GPU {old[0].uuid} ({old[0].type}) cannot be cut in slices: its multi-process service knows no parts of processors"
        raise RefusedError(what, where="--devices", fix="declare it whole; GPUs since Volta (compute capability 7.0) can be cut")
    if not is_present():
        what = f"slices need NVIDIA's multi-process service, and {CONTROL} is not on the path"
        fix = "install it with the driver's tools; in a container, add it from the host"
        raise RefusedError(what, where="--devices", fix=fix)


def unbounded(machine: Machine) -> str:
    """That the memory of slices has no limit here, for the operator; empty: it has, or there are none."""
    if any(is_slice(node.type) and node.name in machine.cuda and not node.device_memory for node in machine.cluster.nodes):
        return "the memory of slices is not limited: NVML does not say how much their GPUs have (is nvidia-ml-py installed?)"
    return ""


# NVIDIA's multi-process service, where it is there: jobs that share a GPU run side by side, each with its part of
# the processors.
#
# Every GPU that is cut in slices has a daemon of its own, so that a crash concerns the jobs on that GPU only. One
# more daemon serves jobs that have parts of whole GPUs; without it the driver lets them take turns of milliseconds,
# which needs nothing from us. Daemons are started with the first job that needs them, outlive the service as jobs
# do, and are ended when the jobs have been drained.

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


# Crashes of the multi-process service, and the incarnations that they end: those are started again, which counts as
# no failure of theirs.
#
# A client that makes its GPU raise an exception ends all clients on that GPU, and so does the end of a daemon or of
# its server. Clients then fail by themselves, one a moment before the other, or hang. So the service is looked at
# every second while jobs run on slices, and whenever one of these has failed.

_LOG = logging.getLogger("gantline.live")
_PAUSE = 1.0  # seconds between two looks


class SliceCrashes:
    """Finds crashes, and marks the incarnations that they concern: ``lost`` in their orders says what happened."""

    def __init__(self, mps: Mps, slices: Callable[[Sequence[int]], Sequence[Slice]]) -> None:
        self._mps, self._slices, self._next = mps, slices, 0.0

    def look(self, alive: Sequence[Incarnation]) -> None:
        """Look at the service, if it is time to, and end what a crash has left hanging."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _PAUSE
            self._look(alive)

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """One has ended: where a crash is the cause, it has been ended from outside.

        One that failed alone on its GPU has caused the crash itself.
        """
        state, gpus = one.state, self._gpus(one)
        if gpus and state.get("cause") == "failed" and state.get("exit") is not None and not one.order.get("lost"):
            crashes = self._look([*alive, one])
            shares_gpu = any(gpus & self._gpus(other) for other in alive if other is not one)
            one.order |= {"lost": why} if shares_gpu and (why := next((crashes[gpu] for gpu in gpus if gpu in crashes), "")) else {}
        if one.order.get("lost") and state.get("cause") != "finished":
            one.state = state | {"cause": "failed", "exit": None, "why": one.order["lost"]}

    def _look(self, alive: Sequence[Incarnation]) -> dict[str, str]:
        held = [(one, self._gpus(one)) for one in alive if one.order.get("want") != "stop"]
        crashes = self._mps.crashes(sorted({gpu for _, gpus in held for gpu in gpus}))
        found = {gpu: f"the multi-process service of GPU {gpu} crashed: {why}" for gpu, why in crashes.items()}
        for gpu, why in found.items():
            _LOG.warning("%s", why)
            for one, gpus in held:
                if gpu in gpus and not one.over:
                    one.write_order(want="stop", grace=0.0, lost=why)
        return found

    def _gpus(self, one: Incarnation) -> set[str]:
        return {part.gpu for part in self._slices(one.devices) if part.gpu is not None}
