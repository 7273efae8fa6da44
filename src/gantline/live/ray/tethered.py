"""Starts the keeper of a node's part of a gang as a program that lives no longer than the actor which asked for it.

The actor holds the other end of a socket. However the actor ends, its end is closed, and everything that the keeper has started ends. The
program is no child of the actor: Ray kills the children of a worker that it ends, before they could tidy up.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

from gantline.live.local.fork_server import ROOT
from gantline.live.local.keeper import Keeper
from gantline.live.local.watching import watch_over

_COMMAND = (
    sys.executable, "-S", "-E", "-c",
    f"import sys; sys.path[0] = {ROOT!r}; from gantline.live.ray.tethered import become_keeper; become_keeper(sys.argv[1])",
)  # fmt: skip


def begin_keeper(folder: str) -> socket.socket:
    """Let a keeper begin in that folder; the socket is at its end when the keeper and all that it has started are gone."""
    ours, theirs = socket.socketpair()
    with theirs, open(os.path.join(folder, "keeper.log"), "ab") as log:
        subprocess.run((*_COMMAND, folder), stdin=theirs.fileno(), stdout=log, stderr=log, cwd=folder, check=True)
    return ours


def become_keeper(folder: str) -> None:
    """The program itself."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # until the keeper handles it
    if os.fork():
        os._exit(0)
    code = 1
    try:
        os.setsid()
        code = watch_over(folder, Keeper(folder).run, tether=0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)
