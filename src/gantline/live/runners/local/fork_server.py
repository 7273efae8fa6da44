"""Where keepers are forked from: a process that has imported what they need, or a template that has imported what their jobs need, too.

A forked keeper has a session, a log and a parent of its own like one that was started as a program. Nothing depends on the fork server once
a keeper is there: it ends when the service does, however that ends, and keepers go on. The service opens no process by its number, which
might be another's by then: it is sent a file descriptor for it.

A template is there only where the service is started with modules to preload. One that cannot import them is reported once, and one that
dies is reported and replaced; jobs start in the ordinary way where none is ready.
"""

from __future__ import annotations

import logging
import os
import signal
import sys

from gantline.fork_server import ForkServer, serve
from gantline.live.runners.local.files import ROOT
from gantline.live.runners.local.forked_programs import become_template
from gantline.live.runners.local.keeper import keep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gantline.live.jobs.launch import Launch

_LOG = logging.getLogger("gantline.live")
#: the command of a fork server; its socket is standard input
FORK_SERVER = (
    sys.executable, "-S", "-E", "-c",
    f"import os, sys; sys.path[0] = {ROOT!r}; from gantline.live.runners.local.fork_server import serve_keepers; os._exit(serve_keepers())",
)  # fmt: skip
_TEMPLATE = f"""import os, sys
path, sys.path[0] = sys.path[1:], {ROOT!r}
from gantline.live.runners.local.fork_server import serve_keepers
os._exit(serve_keepers(preload=sys.argv[1:], path=path))"""
_PATIENCE = 10.0  # seconds for a keeper to be forked: a fork server that does not answer is replaced
_IMPORT_PATIENCE = 100.0  # seconds for the imports at the start of a service

#: what is handed on from the service's own environment; everything else of a job's environment comes from its specification
_HANDED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SHELL", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH",
    "CUDA_HOME",
)  # fmt: skip


def handed_on() -> dict[str, str]:
    """What jobs have from the service's own environment."""
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ}


def serve_keepers(keep: Callable[[str], int] = keep, preload: Sequence[str] = (), path: Sequence[str] = ()) -> int:
    """The process itself: `keep` is what a keeper does in its folder.

    With modules to preload it is a template of programs (`forked_programs`), which find others in `path`.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until a keeper handles it: else the signal would end it

    def become(folder: bytes, files: list[int]) -> int:
        os.setsid()
        os.chdir(folder)
        log = os.open("keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        return keep(os.fsdecode(folder))

    return serve(become, lambda: become_template(preload, path) if preload else "")


class KeeperForkServer(ForkServer):
    """The service's side."""

    def __init__(self, command: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> None:
        super().__init__(FORK_SERVER if command is None else command, env, patience=_PATIENCE, quiet=True)

    def begin(self, folder: str) -> int:
        """Let a keeper begin in that folder; a file descriptor of the process above it. OSError: none can be had."""
        return self.fork(os.fsencode(folder)).let_go()


class WarmTemplate(KeeperForkServer):
    """The service's side of a template; keepers that it cannot fork are forked by the plain server."""

    def __init__(self, names: Sequence[str], plain: KeeperForkServer) -> None:
        # its environment is that of jobs: they could read what else the service has in its own
        super().__init__((sys.executable, "-c", _TEMPLATE, *names), handed_on())
        self.names, self._plain = tuple(names), plain
        self.failure = ""  # why there is no template, and will be none

    def warm_up(self, seconds: float = _IMPORT_PATIENCE) -> None:
        """Start it, and wait until it has imported everything."""
        self._restart()
        if not self.has_imported(seconds) and not self.failure:
            self._fail(f"the imports have not ended within {seconds:g} s")

    def suits(self, launch: Launch) -> bool:
        """Whether a fork may take the place of this job's start; its keeper looks more closely."""
        return not self.failure and not launch.shell and os.path.basename(launch.command[0]).startswith("python")

    def begin(self, folder: str) -> int:
        """Let a keeper begin in that folder; a file descriptor of the process above it."""
        if self.has_imported(0.0):
            try:
                return self.ask(os.fsencode(folder)).let_go()
            except (ConnectionError, TimeoutError) as error:
                _LOG.warning("the template that has imported %s is gone (%s); another is started", ", ".join(self.names), error)
                self._restart()
        return self._plain.begin(folder)

    def has_imported(self, seconds: float) -> bool:
        """Whether it is ready; waits for its word so long."""
        try:
            return self.is_ready(seconds)
        except OSError as error:
            self._fail(str(error))
            return False

    def _restart(self) -> None:
        self.close()
        try:
            self.start()
        except OSError as error:
            self._fail(str(error))

    def _fail(self, why: str) -> None:
        self.failure = f"jobs start without a template that has imported {', '.join(self.names)}: {why}"
        _LOG.warning("%s", self.failure)
        self.close()
