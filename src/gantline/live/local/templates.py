"""A warm template: a process that has imported what jobs need, from which their keepers and so their ranks are forked.

Off unless the service is started with modules to preload. A template that cannot import them is reported once, and one that dies is
reported and replaced; jobs start in the ordinary way where none is ready.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
from collections.abc import Sequence

from gantline.live.launch import Launch
from gantline.live.local.environment import handed_on
from gantline.live.local.fork_server import ROOT, KeeperForkServer

_LOG = logging.getLogger("gantline.live")
_PATIENCE = 100.0  # seconds for the imports at the start of a service
_PROGRAM = """import sys
path, sys.path[0] = sys.path[1:], {root!r}
from gantline.live.local.fork_server import serve
import os; os._exit(serve(sys.argv[1:], path))"""


class WarmTemplate(KeeperForkServer):
    """The service's side of a template; keepers that it cannot fork are forked by the plain server."""

    def __init__(self, names: Sequence[str], plain: KeeperForkServer) -> None:
        super().__init__()
        self.names, self._plain = tuple(names), plain
        self.failure = ""  # why there is no template, and will be none
        self._is_ready = False

    def warm_up(self, seconds: float = _PATIENCE) -> None:
        """Start it, and wait until it has imported everything."""
        self._restart()
        if not self._hears(seconds) and not self.failure:
            self._fail(f"the imports have not ended within {seconds:g} s")

    def suits(self, launch: Launch) -> bool:
        """Whether a fork may take the place of this job's start; its keeper looks more closely."""
        return not self.failure and not launch.shell and os.path.basename(launch.command[0]).startswith("python")

    def begin(self, folder: str) -> int:
        """Let a keeper begin in that folder; a file descriptor of the process above it."""
        if self._hears(0.0):
            try:
                return self._ask(folder)
            except (ConnectionError, TimeoutError) as error:
                _LOG.warning("the template that has imported %s is gone (%s); another is started", ", ".join(self.names), error)
                self._restart()
        return self._plain.begin(folder)

    def _hears(self, seconds: float) -> bool:
        """Whether it is ready; waits for its word so long."""
        if self._is_ready or self._socket is None:
            return self._is_ready
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if poll.poll(1000.0 * seconds):
            said = ""
            with contextlib.suppress(OSError):
                said = self._socket.recv(8192).decode(errors="replace")
            if said == "ready":
                self._is_ready = True
            else:
                self._fail(said or "it ended while it imported them")
        return self._is_ready

    def _restart(self) -> None:
        if self._socket is not None:
            self._end()
        self._is_ready = False
        try:
            self._start()
        except OSError as error:
            self._fail(str(error))

    def _fail(self, why: str) -> None:
        self.failure = f"jobs start without a template that has imported {', '.join(self.names)}: {why}"
        _LOG.warning("%s", self.failure)
        self.close()

    def _command(self) -> tuple[Sequence[str], dict[str, str] | None]:
        """Its environment is that of jobs: they could read what else the service has in its own."""
        return (sys.executable, "-c", _PROGRAM.format(root=ROOT), *self.names), handed_on()
