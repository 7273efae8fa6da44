"""Python programs in processes that have imported what they need: forked from a warm one, and otherwise as if they had been started.

A keeper that was forked from a warm template (`templates`) has its modules, and forks ranks from itself. A program is started in the
ordinary way where a fork would differ from a start: another interpreter, options of the interpreter, variables that it reads at its start.
Keepers import this; it needs the standard library only.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys
import threading
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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
    import importlib

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
        """Run in this process, which has just been forked, and end it."""
        code = 1
        try:
            self._prepare(env)
            self._run()
            code = 0
        except SystemExit as end:
            code = _code_of(end)
        except BaseException as error:
            own = error.with_traceback(_own_frames(error))
            sys.excepthook(type(own), own, own.__traceback__)
            code = 130 if isinstance(error, KeyboardInterrupt) else 1
        finally:
            with contextlib.suppress(BaseException):
                threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as the end of an interpreter does
                atexit._run_exitfuncs()
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _prepare(self, env: dict[str, str]) -> None:
        """All that the start of an interpreter sets."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.environ.clear()
        os.environ.update(env | _coerced_locale(env))
        atexit._clear()
        for number, name in ((1, "stdout"), (2, "stderr")):
            errors = "backslashreplace" if number == 2 else "surrogateescape"
            file = io.TextIOWrapper(io.FileIO(number, "w", closefd=False), encoding="utf-8", errors=errors, write_through=True)
            setattr(sys, name, file)
            setattr(sys, f"__{name}__", file)
        sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")  # type: ignore[misc]
        sys.argv = list(self.argv)
        own = os.path.dirname(os.path.realpath(self.argv[0])) if self.kind == "file" else (os.getcwd() if self.kind == "module" else "")
        sys.path[:] = [own, *_Template.path]
        if not any(name.split(".")[0] == "gantline" for name in _Template.names):
            for name in [name for name in sys.modules if name.split(".")[0] == "gantline"]:
                del sys.modules[name]
        _as_if_imported_now(env)

    def _run(self) -> None:
        main = types.ModuleType("__main__")
        main.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = main
        if self.kind == "module":
            import runpy

            runpy._run_module_as_main(self.argv[0])  # type: ignore[attr-defined]  # what ``python -m`` calls
            return
        if self.kind == "file":
            main.__file__, main.__dict__["__cached__"] = self.argv[0], None
            with io.open_code(os.path.abspath(self.argv[0])) as file:
                code = compile(file.read(), self.argv[0], "exec")
        else:
            code = compile(self.code, "<string>", "exec")
        exec(code, main.__dict__)


class ForkedRank:
    """A forked process, with what a keeper uses of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        if self.returncode is None:
            try:
                found, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                found, status = self.pid, 0
            self.returncode = os.waitstatus_to_exitcode(status) if found else None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


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


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def _own_frames(error: BaseException) -> Any:
    """The traceback from the program's first line on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return frames
