"""Python files of users, by name: ``mine.py:MyPolicy``, or ``mine.py`` where the file holds one thing of that kind."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gantline._alarm import TimeOverError, with_alarm
from gantline.core.errors import GantlineError, NotFoundError, UsageError, near
from gantline.traces.files.given_code import permitted

LOADING = 60.0
"""Seconds on the clock for importing a file with whatever it imports, and for making one thing of it."""
Answer = TypeVar("Answer")
_being_loaded: ContextVar[frozenset[Path]] = ContextVar("being loaded", default=frozenset())


@dataclass(frozen=True)
class PartKind:
    """A kind of thing that users write: what one and several are called, the option that names it, what is one, and its base class."""

    noun: str
    nouns: str
    flag: str
    is_one: Callable[[object], bool]
    base: str


@dataclass(frozen=True)
class FilePart:
    """What a file holds under a name."""

    thing: Any
    attribute: str
    file: str


def python_file(name: str) -> str:
    """The file that a name points at, ``FILE.py`` or ``FILE.py:NAME``; empty for registered names."""
    return name.partition(".py")[0] + ".py" if ".py" in name else ""


def part_of_file(name: str, kind: PartKind) -> FilePart:
    """What ``FILE.py:NAME`` means, or ``FILE.py`` where the file defines one thing of that kind."""
    name = permitted(name, kind.noun, kind.flag)
    file = python_file(name)
    module, attribute = load_module(Path(file), kind.flag), name[len(file) :].removeprefix(":")
    own = {key: value for key, value in vars(module).items() if kind.is_one(value) and _is_from(value, module.__name__)}
    if not attribute:
        if len(own) != 1:
            what = f"holds several {kind.nouns}: " + ", ".join(own) if own else f"holds no {kind.noun}"
            raise UsageError(what, where=file, fix=f"write {file}:NAME" if own else f"derive a class from {kind.base}")
        (attribute,) = own
    found = getattr(module, attribute, None)
    if found is None:
        fix = near(attribute, own) if own else f"the file holds no {kind.noun}"
        raise NotFoundError(f"no {kind.noun} '{attribute}'", where=file, fix=fix)
    if not kind.is_one(found):
        what = f"class that is not a {kind.base.rpartition('.')[2]}" if isinstance(found, type) else type(found).__name__
        raise UsageError(f"'{attribute}' is a {what}", where=file, fix=f"derive it from {kind.base}")
    return FilePart(found, attribute, file)


def load_module(path: Path, flag: str) -> ModuleType:
    """Import a file as a module of its own, from its text: stored bytecode would be that of a file as old and as long as this one."""
    if not path.is_file():
        raise NotFoundError("no such file", where=str(path), fix=f"check the path given as {flag}")
    name = f"gantline_policy_{path.stem}"
    loader = SourceFileLoader(name, str(path.absolute()))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    here = path.resolve()
    if here in _being_loaded.get():
        raise UsageError("it names itself while it is loaded", where=str(path), fix="guard that with if __name__ == '__main__'")
    before = _being_loaded.set(_being_loaded.get() | {here})
    try:
        bounded(lambda: exec(loader.source_to_code(loader.get_data(loader.path), loader.path), vars(module)), path, "loading it")
    finally:
        _being_loaded.reset(before)
    return module


def bounded(call: Callable[[], Answer], path: Path, what: str) -> Answer:
    """What a file does before it is asked anything: in bounded time, apart from stdout, and reported with its line if it goes wrong."""
    try:
        with redirect_stdout(sys.stderr):  # stdout is for results
            return with_alarm(call, LOADING)
    except (GantlineError, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        raise UsageError(f"syntax error: {error.msg}", where=f"{error.filename}:{error.lineno}", fix="correct that line") from None
    except TimeOverError as error:
        raise UsageError(
            f"{what} takes longer than {LOADING:g} s", where=_place(error, path), fix="do long work when it is asked"
        ) from None
    except SystemExit as error:
        fix = "guard it with if __name__ == '__main__'"
        raise UsageError(f"{what} calls sys.exit()", where=_place(error, path), fix=fix) from None
    except BaseException as error:
        beside = isinstance(error, ModuleNotFoundError) and path.with_name(f"{str(error.name).partition('.')[0]}.py").is_file()
        fix = f"a policy is one file; to import from its folder, set PYTHONPATH={path.parent.absolute()}" if beside else ""
        raise UsageError(f"{what} raised {type(error).__name__}: {error}", where=_place(error, path), fix=fix) from error


def _place(error: BaseException, path: Path) -> str:
    """The line of the file at which loading stopped."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.absolute()]
    lines += [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _is_from(value: object, module: str) -> bool:
    return getattr(value, "__module__", "") == module
