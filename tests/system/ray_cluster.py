"""A Ray cluster for tests: several nodes on this machine, each a few processes that are stopped by their ids."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.live.specs import until

os.environ.update({"RAY_gcs_rpc_server_reconnect_timeout_s": "600"})  # Ray reads it when it is imported
pytest.importorskip("ray", reason="Ray is not installed: pip install 'gantline[ray]'")

_STORE = 80_000_000  # bytes: the smallest that Ray takes
_SETTINGS = {
    "RAY_gcs_storage": "rocksdb",  # so that it can come back with what it knew
    "RAY_gcs_rpc_server_reconnect_timeout_s": "600",
    "RAY_raylet_start_wait_time_s": "600",  # how long a node takes to start is the machine's affair
    "RAY_DISABLE_IMPORT_WARNING": "1",
}


class RayCluster:
    """Its nodes are called n0, n1 and so on; n0 has the control store and no devices, so that any other may be lost."""

    def __init__(self, nodes: int, cpus: int = 2, gpus: int = 0) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gr-"))  # short: Ray makes sockets there
        self.cpus, self.gpus = cpus, gpus
        self.port = _lasting_port()
        self.address = f"127.0.0.1:{self.port}"
        self._nodes: dict[str, set[int]] = {}
        self.add("n0", "--head", f"--port={self.port}", "--include-dashboard=false", "--num-gpus=0", cpus=0)
        for number in range(nodes):
            self.add(f"n{number + 1}")

    def add(self, name: str, *how: str, cpus: int | None = None) -> None:
        """Start a node, in a folder of its own: nodes that share one overwrite each other's unpacked code."""
        before = self._processes()
        joins = how or (f"--address={self.address}", f"--num-gpus={self.gpus}")
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", *joins, f"--num-cpus={self.cpus if cpus is None else cpus}",
            f"--temp-dir={self.folder / name}", "--disable-usage-stats", f"--object-store-memory={_STORE}", "--node-ip-address=127.0.0.1",
            "--labels", f"gantline.io/node={name}",
        ]  # fmt: skip
        env = {**os.environ, **_SETTINGS, "RAY_gcs_storage_path": str(self.folder / "gcs")}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        self._nodes[name] = self._processes() - before

    def lose(self, name: str) -> None:
        """End a node at once, as a crash of its machine does: Ray's processes there, and with them all that they have started."""
        _kill(self._nodes.pop(name))

    @contextmanager
    def without_store(self) -> Iterator[None]:
        """Ray's control store is away, and comes back with what it knew, also where the test fails meanwhile."""
        (pid,) = (one for one in self._nodes["n0"] if b"gcs_server" in Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")[0])
        command, env = (
            [os.fsdecode(one) for one in Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")] for name in ("cmdline", "environ")
        )
        os.kill(pid, signal.SIGKILL)
        self._nodes["n0"].remove(pid)
        try:
            yield
        finally:
            known = dict(one.split("=", 1) for one in env if one)
            with open(self.folder / "store.log", "wb") as log:
                again = subprocess.Popen(command[:-1], env=known, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
            self._nodes["n0"].add(again.pid)
            until(lambda: again.poll() is not None or _listens(self.port), "the return of the control store")
            assert again.poll() is None, f"the control store did not come back: {(self.folder / 'store.log').read_text()}"

    def stop(self) -> None:
        """End everything."""
        _kill(self._processes())
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> set[int]:
        """Of this cluster: those that name its folder."""
        found = set()
        for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            with suppress(OSError):
                if str(self.folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.add(pid)
        return found


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(_is_there, pids)), "the end of processes that were killed")


def _is_there(pid: int) -> bool:
    """Whether the process runs; one of which only the exit code is left does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _lasting_port() -> int:
    """A free port that stays free while nothing listens there for a while: none of those that the kernel gives to connections.

    Otherwise one of the many processes that try to reach a control store which is away is given its port sooner or later, and the store
    cannot come back.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(20_000, max(lowest, 21_000))  # Ray gives those below to its workers
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True
    return False
