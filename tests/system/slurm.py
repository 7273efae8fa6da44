"""A real Slurm on loopback: munged, slurmctld and a few slurmd with GPUs that exist in its books only."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue", "sbatch", "scontrol")
_SBIN = "/usr/sbin:/sbin"
_PATIENCE = 20.0  # seconds; a quiet machine needs two


def missing() -> list[str]:
    """The programs that are not installed here."""
    return [name for name in PROGRAMS if _program(name) is None]


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SBIN}")


@dataclass
class SlurmCluster:
    """The daemons of one cluster, and the environment in which Slurm's commands reach them."""

    home: Path
    nodes: int = 3
    gpus: int = 4
    settings: dict[str, str] = field(default_factory=dict)
    daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)  # slurmd by the name of its node

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.home / "slurm.conf"), "PATH": f"{os.environ.get('PATH', '')}:{_SBIN}"}

    def run(self, *command: str) -> str:
        """What a command of Slurm prints."""
        found = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        assert found.returncode == 0, f"{' '.join(command)}: {found.stderr}"
        return found.stdout

    def _try(self, *command: str) -> str:
        """The same of a command that may fail, or find nothing that answers."""
        with suppress(subprocess.TimeoutExpired):
            return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=_PATIENCE, check=False).stdout.strip()
        return ""

    def submit(self, seconds: float, gpus: int, *more: str) -> str:
        """Submit a job that sleeps; its id."""
        resources = (f"--gres=gpu:{gpus}",) if gpus else ()
        return self.run("sbatch", "--parsable", "--output=/dev/null", "-n1", *resources, *more, f"--wrap=sleep {seconds}").strip()

    def allocate(self, *asked: str) -> str:
        """Take all nodes for steps, as `salloc` does for a shell; the id of the job."""
        before = set(self.run("squeue", "-h", "-o", "%i").split())
        self.run("salloc", "--no-shell", "--no-kill", f"--nodes={self.nodes}", *asked)
        (job,) = set(self.run("squeue", "-h", "-o", "%i").split()) - before
        return job

    def write(self) -> None:
        ports = _free_ports(self.nodes + 1)
        names = [f"node{k}" for k in range(self.nodes)]
        for part in ("state", "munge", *(f"spool-{name}" for name in names)):
            (self.home / part).mkdir(parents=True, exist_ok=True)
        for k in range(self.gpus):
            self._make_device(self.home / f"gpu{k}")
        (self.home / "gres.conf").write_text(
            "".join(f"NodeName={name} Name=gpu Type=a100 File={self.home}/gpu[0-{self.gpus - 1}]\n" for name in names)
        )
        (self.home / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        options = {
            "ClusterName": "gantline", "SlurmctldHost": f"{socket.gethostname()}(127.0.0.1)", "SlurmctldPort": str(ports[0]),
            "SlurmUser": "root", "SlurmdUser": "root", "AuthType": "auth/munge", "AuthInfo": f"socket={self.home}/munge/socket",
            "CredType": "cred/munge", "StateSaveLocation": f"{self.home}/state", "SlurmdSpoolDir": f"{self.home}/spool-%n",
            "SlurmctldPidFile": f"{self.home}/ctld.pid", "SlurmdPidFile": f"{self.home}/slurmd-%n.pid",
            "SlurmctldLogFile": f"{self.home}/ctld.log", "SlurmdLogFile": f"{self.home}/slurmd-%n.log", "GresTypes": "gpu",
            "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_Core", "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none", "SwitchType": "switch/none", "MpiDefault": "none", "ReturnToService": "2",
            "PriorityType": "priority/multifactor", "SchedulerType": "sched/backfill", "AccountingStorageType": "accounting_storage/none",
            "JobCompType": "jobcomp/filetxt", "JobCompLoc": f"{self.home}/completed.txt", "SlurmdParameters": "config_overrides",
            "SlurmdTimeout": "10", "InactiveLimit": "0", "KillWait": "2", "MinJobAge": "600", "UnkillableStepTimeout": "60",
        }  # fmt: skip
        options |= self.settings
        lines = [f"{key}={value}" for key, value in options.items()]
        lines += [
            f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs=16 RealMemory=1000 Gres=gpu:a100:{self.gpus}"
            for name, port in zip(names, ports[1:])
        ]
        lines.append(f"PartitionName=main Nodes={','.join(names)} Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO")
        (self.home / "slurm.conf").write_text("\n".join(lines) + "\n")

    @staticmethod
    def _make_device(path: Path) -> None:
        """A device that swallows what it is given; where only root may make one, a file, of which Slurm gives steps no number."""
        if os.getuid() == 0 and not path.exists():
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        else:
            path.touch()

    def start(self) -> None:
        """Start the daemons and wait until every node is idle."""
        self.write()
        key = self.home / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.home / "munge").chmod(0o755)
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={self.home}/munge/socket", f"--key-file={key}",
            f"--pid-file={self.home}/munge/pid", f"--log-file={self.home}/munge/log", f"--seed-file={self.home}/munge/seed",
        )  # fmt: skip
        _wait(lambda: (self.home / "munge" / "socket").exists(), "munged's socket")
        self._start_controller()
        for k in range(self.nodes):
            self.start_node(k)
        _wait(lambda: self._states() == ["idle"] * self.nodes, "idle nodes")

    def start_node(self, k: int) -> subprocess.Popen[bytes]:
        self._nodes[f"node{k}"] = self._daemon("slurmd", "-D", "-N", f"node{k}", "-f", str(self.home / "slurm.conf"))
        return self._nodes[f"node{k}"]

    def lose(self, name: str) -> None:
        """End a node at once, as a crash of its machine does: its slurmd, its steps, and what these have started."""
        self._nodes[name].kill()
        own = f"SLURMD_NODENAME={name}".encode()
        tasks = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if own in _read(f"/proc/{pid}/environ").split(b"\0")]
        for pid in {*tasks, *(_parent(task) for task in tasks)} - {0, 1, os.getpid()}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @contextmanager
    def without_controller(self) -> Iterator[None]:
        """Slurmctld is away, and comes back with what it knew."""
        self._controller.terminate()
        self._controller.wait()
        yield
        self._start_controller()

    def _start_controller(self) -> None:
        self._controller = self._daemon("slurmctld", "-D", "-f", str(self.home / "slurm.conf"))

    def _states(self) -> list[str]:
        return self._try("sinfo", "-hN", "-o", "%T").split()

    def _daemon(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        program = _program(name)
        log = (self.home / f"{name}.out").open("ab")
        self.daemons.append(subprocess.Popen((program, *arguments), env=self.env, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        return self.daemons[-1]

    def stop(self) -> None:
        """End all jobs, then the daemons: a step that ends after them would wait for them for ever."""
        self._try("scancel", "--user=root", "--signal=KILL")
        self._try("scancel", "--user=root")
        end = time.monotonic() + _PATIENCE
        while self._try("squeue", "--noheader") and time.monotonic() < end:
            time.sleep(0.05)
        for one in reversed(self.daemons):
            one.terminate()
        for one in reversed(self.daemons):
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()


@contextmanager
def slurm_cluster(home: Path, nodes: int = 3, gpus: int = 4, **settings: str) -> Iterator[SlurmCluster]:
    """A cluster for the length of a test."""
    cluster = SlurmCluster(home, nodes, gpus, settings)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@dataclass(frozen=True)
class Allocated:
    """A cluster, and an allocation of all its nodes."""

    cluster: SlurmCluster
    job: str


@contextmanager
def allocated(home: Path, *asked: str, nodes: int = 3, **settings: str) -> Iterator[Allocated]:
    """An allocation for the length of a test, in a cluster which this process and what it starts can reach."""
    with slurm_cluster(home, nodes, **settings) as cluster, pytest.MonkeyPatch.context() as patch:
        for name in ("SLURM_CONF", "PATH"):
            patch.setenv(name, cluster.env[name])
        yield Allocated(cluster, cluster.allocate(*asked))


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    return int((_read(f"/proc/{pid}/stat").rsplit(b")", 1)[-1].split() or [b"", b"0"])[1])


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


def _wait(ready: object, what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not ready():  # type: ignore[operator]
        assert time.monotonic() < end, f"no {what} within {_PATIENCE:g} s"
        time.sleep(0.05)
