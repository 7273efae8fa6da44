"""The processes that fork keepers outlive the runners of tests: most tests start a job or two, and starting such a process takes longer.

A runner that is closed leaves its fork server to the next one. Tests that are about fork servers themselves have their own
(`test_fork_server.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gantline.live.runners.local import runner
from gantline.live.runners.local.fork_server import KeeperForkServer

_idle: list[KeeperForkServer] = []
os.register_at_fork(after_in_child=_idle.clear)  # two processes must not talk to one of them


class WarmForkServer(KeeperForkServer):
    """Forks from one that is idle before it starts one, and leaves it idle when it is closed."""

    _warm: KeeperForkServer | None = None

    @property
    def warm(self) -> KeeperForkServer:
        if self._warm is None:
            self._warm = _idle.pop() if _idle else KeeperForkServer()
        return self._warm

    def begin(self, folder: str) -> int:
        return self.warm.begin(folder)

    def close(self) -> None:
        if self._warm is not None:
            _idle.append(self._warm)
            self._warm = None


@pytest.fixture(scope="session", autouse=True)
def warm_fork_servers() -> Iterator[None]:
    """Runners have warm ones; all of them are ended with the last test."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(runner, "KeeperForkServer", WarmForkServer)
        yield
    while _idle:
        _idle.pop().close()
