"""A PostgreSQL server of the tests' own: a private port of loopback, a temporary folder, never as root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

LIMIT = 120.0  # seconds for the server to answer


def is_installed() -> bool:
    """Whether there is a server to be started."""
    return any(Path("/usr/lib/postgresql").glob("*/bin/postgres")) or shutil.which("postgres") is not None


def programs() -> Path:
    """Where Debian keeps initdb and postgres, the newest version; else where the PATH says."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if found:
        return found[-1]
    known = shutil.which("postgres")
    if known is None:
        raise RuntimeError("PostgreSQL is not installed: run .ci/test-system as root on Debian or Ubuntu")
    return Path(known).resolve().parent


class Postgres:
    """Started when it is made; `close` ends it and removes all of it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gantline-pg-"))
        self.who: dict[str, Any] = {}
        if os.getuid() == 0:  # the server refuses to run as root
            entry = pwd.getpwnam("postgres")
            self.who = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        data, env = self.folder / "data", {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(self.folder)}
        told = {"cwd": self.folder, "env": env, **self.who}
        made = [str(programs() / "initdb"), "-D", str(data), "-U", "gantline", "-A", "trust", "-E", "UTF8", "--no-locale"]
        subprocess.run(made, check=True, capture_output=True, **told)
        options = [f"-p{self.port}", f"-k{self.folder}", "-clisten_addresses=127.0.0.1", "-cshared_buffers=16MB", "-cmax_connections=30"]
        self._command, self._told = [str(programs() / "postgres"), "-D", str(data), *options], told
        self._start()
        self._count = 0

    def _start(self) -> None:
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log, **self._told)
        self._wait()

    def restart(self) -> None:
        """As an upgrade of its package does: all connections are cut."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        self._start()

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://gantline@127.0.0.1:{self.port}/{name}"

    def database(self) -> str:
        """The URL of a new, empty database."""
        self._count += 1
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"create database test_{self._count}")  # type: ignore[arg-type]
        return self.url(f"test_{self._count}")

    def _wait(self) -> None:
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None:
                    raise RuntimeError((self.folder / "server.log").read_text(encoding="utf-8")) from None
                time.sleep(0.1)
        raise RuntimeError(f"PostgreSQL has not answered within {LIMIT:g} s")

    def close(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed any more
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
