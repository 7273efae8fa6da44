"""The processes that fork keepers outlive the runners of tests: most tests start a job or two, and starting such a process takes longer.

A runner that is closed leaves its fork server to the next one. Tests that are about fork servers themselves have their own
(`test_fork_server.py`).
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from gantline.live.runners.local import runner
from gantline.live.runners.local.fork_server import KeeperForkServer

_idle: list[tuple[subprocess.Popen[bytes], socket.socket]] = []
os.register_at_fork(after_in_child=_idle.clear)  # two processes must not talk to one of them


class WarmForkServer(KeeperForkServer):
    """Takes one that is idle before it starts one, and leaves it idle when it is closed."""

    def _start(self) -> None:
        while _idle:
            self._process, self._socket = _idle.pop()
            if self._process.poll() is None:
                return
            self._end()
        super()._start()

    def close(self) -> None:
        if self._process is not None and self._socket is not None:
            _idle.append((self._process, self._socket))
            self._process = self._socket = None


@pytest.fixture(scope="session", autouse=True)
def warm_fork_servers() -> Iterator[None]:
    """Runners have warm ones; all of them are ended with the last test."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(runner, "KeeperForkServer", WarmForkServer)
        yield
    while _idle:
        last = KeeperForkServer()
        last._process, last._socket = _idle.pop()
        last.close()
