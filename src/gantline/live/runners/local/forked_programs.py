"""Python programs in processes that have imported what they need: forked from a warm one.

A keeper that was forked from a warm template (`templates`) has its modules, and forks ranks from itself. A program is started in the
ordinary way where a fork would differ from a start: another interpreter, options of the interpreter, variables that it reads at its start.
Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import importlib
import io
import os
import runpy
import signal
import sys
import threading
import traceback
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, NoReturn

#: variables that act when a process starts, and not later
_AT_START = ("PYTHON", "LD_")
_WITHOUT_EFFECT = ("PYTHONUNBUFFERED",)  # what a forked program writes is never held back
_DEFERRED = "-c"


class _Template:
    """What this process has imported for programs; nothing in a process that is no template."""

    names: tuple[str, ...] = ()
    path: tuple[str, ...] = ()  # where programs find modules, behind their own folder
    variables: dict[str, str]


def become_template(names: Sequence[str], path: Sequence[str]) -> str:
    """Import modules for programs to come; why that cannot be, or nothing."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            return f"cannot import {name}: {type(error).__name__}: {error}"
    if threading.active_count() > 1:
        return f"importing {', '.join(names)} starts threads, which a fork does not take along"
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return f"importing {', '.join(names)} initialises CUDA, which a fork cannot use"
    _Template.names, _Template.path, _Template.variables = tuple(names), tuple(path), _at_start(dict(os.environ))
    return ""


def _at_start(env: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(_AT_START) and name not in _WITHOUT_EFFECT}


class PythonProgram:
    """A program that this process can become: ``python FILE``, ``python -m MODULE`` or ``python -c CODE`` with arguments."""

    def __init__(self, kind: str, argv: list[str], code: str = "") -> None:
        self.kind, self.argv, self.code = kind, argv, code

    @staticmethod
    def of(command: list[str], env: dict[str, str]) -> PythonProgram | None:
        """The program of a command, where this process is a template and a fork of it would do the same."""
        if not _Template.names or _at_start(env) != _Template.variables or not _is_this_python(command[0], env):
            return None
        words = command[1:]
        while words[:1] == ["-u"]:
            words = words[1:]
        if words[:1] == ["-m"] and len(words) > 1:
            return PythonProgram("module", words[1:])
        if words[:1] == [_DEFERRED] and len(words) > 1:
            return PythonProgram("code", [_DEFERRED, *words[2:]], words[1])
        return PythonProgram("file", words) if words and not words[0].startswith("-") else None

    def become(self, env: dict[str, str]) -> NoReturn:
        """Run in this process, which `multiprocessing` has just forked and will end."""
        self._prepare(env)
        try:
            self._run()
        except SystemExit as end:
            sys.exit(end.code if end.code is None or isinstance(end.code, str) else int(end.code) & 0xFF)
        except BaseException as error:
            traceback.print_exception(error.with_traceback(_own_frames(error)))
            sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
        sys.exit(0)

    def _prepare(self, env: dict[str, str]) -> None:
        """What the start of an interpreter sets."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.environ.clear()
        os.environ.update(env | _coerced_locale(env))
        redirect_stdout(_unbuffered(1, "surrogateescape")).__enter__()  # until the process ends
        redirect_stderr(_unbuffered(2, "backslashreplace")).__enter__()
        own = os.path.dirname(os.path.realpath(self.argv[0])) if self.kind == "file" else (os.getcwd() if self.kind == "module" else "")
        sys.argv[:] = self.argv
        sys.path[:] = [own, *_Template.path]
        _as_if_imported_now(env)

    def _run(self) -> None:
        if self.kind == "module":
            runpy.run_module(self.argv[0], run_name="__main__", alter_sys=True)
        elif self.kind == "file":
            runpy.run_path(self.argv[0], run_name="__main__")
        else:
            exec(compile(self.code, "<string>", "exec"), vars(sys.modules["__main__"]))


def _unbuffered(number: int, errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding="utf-8", errors=errors, write_through=True)


class ForkedRank:
    """A forked process, with what a keeper uses of `subprocess.Popen`; its end is that of a process of `multiprocessing`."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._process = get_context("fork").Process(target=work)
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        if self.poll() is None:
            self._process.kill()


def _coerced_locale(env: dict[str, str]) -> dict[str, str]:
    """What an interpreter adds to its environment where that names no locale (PEP 538)."""
    named = env.get("LC_CTYPE") or env.get("LANG") or "C"
    plain = not env.get("LC_ALL") and named in ("C", "POSIX") and env.get("PYTHONCOERCECLOCALE") != "0"
    return {"LC_CTYPE": "C.UTF-8"} if plain else {}


def _is_this_python(word: str, env: dict[str, str]) -> bool:
    """Whether a command starts the interpreter of this process; one of another environment has the same file, but not the same folder."""
    folders = [""] if "/" in word else env.get("PATH", os.defpath).split(os.pathsep)
    found = next((path for path in (os.path.join(folder, word) for folder in folders) if os.access(path, os.X_OK)), "")
    if not os.path.basename(found).startswith("python"):
        return False
    same = os.path.realpath(found) == os.path.realpath(sys.executable)
    return same and os.path.dirname(os.path.abspath(found)) == os.path.dirname(os.path.abspath(sys.executable))


def _as_if_imported_now(env: dict[str, str]) -> None:
    """Libraries draw seeds and count cores when they are imported: let them do so here."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed()
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        wanted = env.get("OMP_NUM_THREADS", "")
        torch.set_num_threads(int(wanted) if wanted.isdecimal() and int(wanted) else len(os.sched_getaffinity(0)))


def _own_frames(error: BaseException) -> TracebackType | None:
    """The traceback from the program's first line on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
        frames = frames.tb_next
    return frames
