"""A process that has imported all that a keeper needs, and from which keepers are forked: an interpreter takes ten times as long to start.

A forked keeper has a session, a log and a parent of its own like one that was started as a program. Nothing depends on the fork server once
a keeper is there: it ends when the service does, however that ends, and keepers go on. The service opens no process by its number, which
might be another's by then: it is sent a file descriptor for it.
"""

from __future__ import annotations

import array
import contextlib
import gc
import logging
import os
import select
import signal
import socket
import subprocess
import sys

from gantline.live.runners.local.files import ROOT
from gantline.live.runners.local.forked_programs import become_template
from gantline.live.runners.local.keeper import keep

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gantline.live.jobs.launch import Launch


#: the command of a fork server; its socket is standard input
FORK_SERVER = (
    sys.executable, "-S", "-E", "-c",
    f"import os, sys; sys.path[0] = {ROOT!r}; from gantline.live.runners.local.fork_server import serve; os._exit(serve())",
)  # fmt: skip
_LONGEST = 8192  # bytes of a request: the folder of an incarnation
_PATIENCE = 10.0  # seconds for a keeper to be forked: a fork server that does not answer is replaced

#: what is handed on from the service's own environment; everything else of a job's environment comes from its specification
_HANDED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SHELL",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
)


def handed_on() -> dict[str, str]:
    """What jobs have from the service's own environment."""
    return {name: os.environ[name] for name in _HANDED_ON if name in os.environ}


class KeeperForkServer:
    """The service's side: started with the first keeper, and again should it have been killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def begin(self, folder: str) -> int:
        """Let a keeper begin in that folder; a file descriptor of the process above it. OSError: none can be had."""
        if self._socket is not None:
            with contextlib.suppress(ConnectionError, TimeoutError):  # it was killed, or halted
                return self._ask(folder)
            self._end()
        self._start()
        return self._ask(folder)

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until a keeper handles it: else the signal would end it
        try:
            quiet = subprocess.DEVNULL
            command, env = self._command()
            self._process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=quiet, stderr=quiet, cwd="/", env=env, start_new_session=True
            )
        except OSError:
            ours.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        ours.settimeout(_PATIENCE)
        self._socket = ours

    def _command(self) -> tuple[Sequence[str], dict[str, str] | None]:
        """The command that starts it, and its environment; None: the service's own."""
        return FORK_SERVER, None

    def _ask(self, folder: str) -> int:
        assert self._socket is not None
        self._socket.send(os.fsencode(folder))
        answer, numbers, _, _ = socket.recv_fds(self._socket, _LONGEST, 1)
        if not answer:
            raise ConnectionResetError("the process that starts keepers has ended")
        if not numbers:
            raise OSError(answer.decode(errors="replace"))
        return numbers[0]

    def close(self) -> None:
        """End the fork server; keepers go on."""
        if self._socket is not None:
            self._end()

    def _end(self) -> None:
        assert self._socket is not None
        assert self._process is not None
        self._socket.close()
        self._process.kill()  # it must not fork a keeper that the service does not wait for
        self._process.wait()
        self._socket = self._process = None


def serve(preload: Sequence[str] = (), path: Sequence[str] = (), keep: Callable[[str], int] = keep) -> int:
    """Fork a keeper for every folder that is named, until the service that names them is gone; `keep` is what it does.

    With modules to preload it is a template of programs (`forked_programs`), which find others in `path`, and first says how that went.
    """
    asked = socket.socket(fileno=os.dup(0))
    asked.set_inheritable(False)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    if preload:
        why = become_template(preload, path)
        asked.send(why.encode()[:_LONGEST] or b"ready")
        if why:
            return 1
    signal.signal(signal.SIGCHLD, _reap)
    gc.freeze()  # what is here already is shared with all keepers, as long as nothing writes to it
    while folder := asked.recv(_LONGEST):
        with contextlib.suppress(ConnectionError):
            _fork(asked, os.fsdecode(folder), keep)
    return 0


def _fork(asked: socket.socket, folder: str, keep: Callable[[str], int]) -> None:
    """One keeper; its file descriptor, or the reason why there is none, is sent back."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # or it could have ended, and its number be given away, before it is held
    try:
        child = os.fork()
        if child == 0:
            _become_keeper(asked, folder, keep)
        held = os.pidfd_open(child)
    except OSError as error:
        asked.send(str(error).encode())
    else:
        asked.sendmsg([b"begun"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [held]))])
        os.close(held)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})


def _become_keeper(asked: socket.socket, folder: str, keep: Callable[[str], int]) -> None:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        asked.close()
        os.setsid()
        os.chdir(folder)
        log = os.open("keeper.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        code = keep(folder)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)  # all is written when it ends: to tidy up the interpreter would take a fifth of what a short job takes


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


# A warm template: a process that has imported what jobs need, from which their keepers and so their ranks are forked.
#
# Off unless the service is started with modules to preload. A template that cannot import them is reported once, and
# one that dies is reported and replaced; jobs start in the ordinary way where none is ready.

_LOG = logging.getLogger("gantline.live")
_IMPORT_PATIENCE = 100.0  # seconds for the imports at the start of a service
_PROGRAM = """import sys
path, sys.path[0] = sys.path[1:], {root!r}
from gantline.live.runners.local.fork_server import serve
import os; os._exit(serve(sys.argv[1:], path))"""


class WarmTemplate(KeeperForkServer):
    """The service's side of a template; keepers that it cannot fork are forked by the plain server."""

    def __init__(self, names: Sequence[str], plain: KeeperForkServer) -> None:
        super().__init__()
        self.names, self._plain = tuple(names), plain
        self.failure = ""  # why there is no template, and will be none
        self._is_ready = False

    def warm_up(self, seconds: float = _IMPORT_PATIENCE) -> None:
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
