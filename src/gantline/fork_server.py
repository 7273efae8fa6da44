"""A process that has imported what others need, and is forked for each of them: an interpreter takes ten times as long to start.

The workers of sweeps and the keepers of jobs come from such processes. Both sides speak over one socket. A request comes with
file descriptors, the first of which is a socket for this one fork: a file descriptor of the new process goes back on it, or the
reason why there is none, and how it ended follows. Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_LONGEST = 8192  # bytes of a request, and of an answer
_MOST_FILES = 8
_READY = b"ready"


class Forked:
    """A process that was forked for us."""

    def __init__(self, pidfd: int, status: socket.socket) -> None:
        self.pidfd, self._status = pidfd, status

    def signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfd, number)

    def wait(self) -> int:
        """Its exit code, or the signal that ended it, below zero; a process of which nothing is known any more counts as killed."""
        with self._status, contextlib.suppress(OSError):
            code = self._status.recv(_LONGEST)
            os.close(self.pidfd)
            return int(code) if code else -signal.SIGKILL
        return -signal.SIGKILL

    def let_go(self) -> int:
        """Its file descriptor, for a caller that does not ask how it ends."""
        self._status.close()
        return self.pidfd


class ForkServer:
    """The side that asks. The process is started with the first fork, and again should it have been killed."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, *, patience: float = 60.0, quiet: bool = False
    ) -> None:
        """`patience`: seconds to wait for an answer; `quiet`: what the process prints is dropped."""
        self.command, self.env, self.patience = command, env, patience
        self.process: subprocess.Popen[bytes] | None = None
        self._quiet = subprocess.DEVNULL if quiet else None
        self._socket: socket.socket | None = None
        self._is_ready = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process; `is_ready` says when it has imported everything."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                self.process = subprocess.Popen(
                    self.command, stdin=theirs.fileno(), stdout=self._quiet, stderr=self._quiet, env=self.env,
                    cwd="/" if self._quiet else None, start_new_session=True,
                )  # fmt: skip
            except OSError:
                ours.close()
                raise
        self._socket, self._is_ready = ours, False

    def is_ready(self, seconds: float) -> bool:
        """Whether it can fork, waiting so long for that; OSError: it never will, and why."""
        if self._is_ready or self._socket is None:
            return self._is_ready
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if poll.poll(1000.0 * seconds):
            word = self._socket.recv(_LONGEST)
            if word != _READY:
                raise ConnectionError(word.decode(errors="replace") or "it ended while it imported them")
            self._is_ready = True
        return self._is_ready

    def fork(self, request: bytes, files: Sequence[int] = ()) -> Forked:
        """A process for this request, which has these files. OSError: none can be had."""
        if self._socket is not None:
            with contextlib.suppress(ConnectionError, TimeoutError):  # it was killed, or halted
                return self.ask(request, files)
            self.close()
        with self._lock:
            if self._socket is None:
                self.start()
        return self.ask(request, files)

    def ask(self, request: bytes, files: Sequence[int] = ()) -> Forked:
        """The same of the process that is there; ConnectionError or TimeoutError: it does not answer."""
        assert self._socket is not None
        with self._lock:
            if not self.is_ready(self.patience):
                raise TimeoutError("the process to fork from does not begin")
        status, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                socket.send_fds(self._socket, [request], [theirs.fileno(), *files])
            status.settimeout(self.patience)
            answer, held, _, _ = socket.recv_fds(status, _LONGEST, 1)
            status.settimeout(None)
            if not answer:
                raise ConnectionResetError("the process to fork from has ended")
            if not held:
                raise OSError(answer.decode(errors="replace"))
        except BaseException:
            status.close()
            raise
        return Forked(held[0], status)

    def close(self) -> None:
        """End it; what it has forked goes on, unless it was made to end with it."""
        with self._lock:
            if self._socket is not None and self.process is not None:
                self._socket.close()
                self.process.kill()  # it must fork nothing that nobody waits for
                self.process.wait()
                self._socket = self.process = None


def serve(
    become: Callable[[bytes, list[int]], int],
    prepare: Callable[[], str] = lambda: "",
    may_fork: Callable[[], str] = lambda: "",
    ends_all: bool = False,
) -> int:
    """The process itself; its socket is standard input. `become` is what a forked process does: it has the request and the files.

    `prepare` imports what is needed, and `may_fork` looks before each fork; both return why it cannot be, or nothing. With `ends_all` what
    was forked ends with the asker.
    """
    control = socket.socket(fileno=os.dup(0))
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    why = prepare()
    with contextlib.suppress(OSError):
        control.send(why.encode()[:_LONGEST] or _READY)
    if why:
        return 1
    gc.freeze()  # what is here already is shared with all that is forked, as long as nothing writes to it
    return _Server(control, become, may_fork, ends_all).run()


class _Server:
    def __init__(
        self, control: socket.socket, become: Callable[[bytes, list[int]], int], may_fork: Callable[[], str], ends_all: bool
    ) -> None:
        self.control, self.become, self.may_fork, self.ends_all = control, become, may_fork, ends_all
        self.alive: dict[int, socket.socket] = {}  # what was forked, and who hears how it ends

    def run(self) -> int:
        ended, wakeup = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as wait:
            wait.register(self.control, selectors.EVENT_READ)
            wait.register(ended, selectors.EVENT_READ)
            while True:
                for key, _ in wait.select():
                    if key.fileobj == ended:
                        os.read(ended, 4096)
                        self._reap()
                    elif not self._obey():
                        for pid in self.alive if self.ends_all else ():
                            os.kill(pid, signal.SIGTERM)
                        return 0

    def _obey(self) -> bool:
        """Fork for the next request; False: there is none any more."""
        try:
            request, files, _, _ = socket.recv_fds(self.control, _LONGEST, _MOST_FILES)
        except ConnectionError:
            return False
        if not files:
            return bool(request)
        status = socket.socket(fileno=files[0])
        why = self.may_fork()
        with contextlib.suppress(OSError):  # nobody waits for the answer any more
            if why:
                status.send(why.encode())
            else:
                self._fork(status, request, files[1:])
        for file in files[1:]:
            os.close(file)
        return True

    def _fork(self, status: socket.socket, request: bytes, files: list[int]) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            status.send(str(error).encode())
            return
        if pid == 0:
            self._be_forked(status, request, files)
        self.alive[pid] = status
        held = os.pidfd_open(pid)  # it is ours to wait for: its number is not given away before that
        try:
            socket.send_fds(status, [b"%d" % pid], [held])
        finally:
            os.close(held)

    def _be_forked(self, status: socket.socket, request: bytes, files: list[int]) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self.control, status, *self.alive.values()):
                other.close()
            code = self.become(request, files)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)  # all is written when it ends: to tidy up the interpreter would take a fifth of what a short job takes

    def _reap(self) -> None:
        """Say how processes have ended."""
        for pid in list(self.alive):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                with self.alive.pop(pid) as listener, contextlib.suppress(OSError):  # nobody waits for it
                    listener.send(b"%d" % os.waitstatus_to_exitcode(status))
