"""A Ray cluster for tests: several nodes on this machine, each a few processes that are stopped by their ids."""

from __future__ import annotations

import os
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

pytest.importorskip("ray", reason="Ray is not installed: pip install 'gantline[ray]'")

_STORE = 80_000_000  # bytes: the smallest that Ray takes
_SETTINGS = {
    "RAY_gcs_storage": "rocksdb",  # so that it can come back with what it knew
    "RAY_gcs_rpc_server_reconnect_timeout_s": "600",
    "RAY_DISABLE_IMPORT_WARNING": "1",
}


class RayCluster:
    """Its nodes are called n0, n1 and so on; n0 has the control store and no devices, so that any other may be lost."""

    def __init__(self, nodes: int, cpus: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gr-"))  # short: Ray makes sockets there
        self.cpus = cpus
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._nodes: dict[str, set[int]] = {}
        self.add("n0", "--head", f"--port={self.port}", "--include-dashboard=false", cpus=0)
        for number in range(nodes):
            self.add(f"n{number + 1}")

    def add(self, name: str, *how: str, cpus: int | None = None) -> None:
        """Start a node."""
        before = self._processes()
        joins = how or (f"--address={self.address}",)
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", *joins, f"--num-cpus={self.cpus if cpus is None else cpus}",
            f"--temp-dir={self.folder}", "--disable-usage-stats", f"--object-store-memory={_STORE}", "--node-ip-address=127.0.0.1",
            "--labels", f"gantline.io/node={name}",
        ]  # fmt: skip
        env = {**os.environ, **_SETTINGS, "RAY_gcs_storage_path": str(self.folder / "gcs")}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        self._nodes[name] = self._processes() - before

    def lose(self, name: str) -> None:
        """End a node at once, as a crash of its machine does: Ray's processes there, and with them all that they have started."""
        _kill(self._nodes.pop(name))

    @contextmanager
    def without_store(self) -> Iterator[None]:
        """Ray's control store is away, and comes back with what it knew."""
        (pid,) = (one for one in self._nodes["n0"] if b"gcs_server" in Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")[0])
        command, env = (
            [os.fsdecode(one) for one in Path(f"/proc/{pid}/{name}").read_bytes().split(b"\0")] for name in ("cmdline", "environ")
        )
        os.kill(pid, signal.SIGKILL)
        self._nodes["n0"].remove(pid)
        yield
        quiet = subprocess.DEVNULL
        known = dict(one.split("=", 1) for one in env if one)
        again = subprocess.Popen(command[:-1], env=known, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
        self._nodes["n0"].add(again.pid)

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
