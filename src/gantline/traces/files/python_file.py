"""Python files of users, by name: ``mine.py:MyPolicy``, or ``mine.py`` where the file holds one thing of that kind.

While a file is read that somebody else may have made, only code that the command line names is loaded. A record, a
snapshot or a store says which policy decided, and that may be ``FILE.py:CLASS``. Whoever wrote the file would choose
the program that its reader runs. So inside `only_given` a name of code means one of the given names, or is refused.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from gantline._alarm import TimeOverError, with_alarm
from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UsageError, near


@dataclass(frozen=True)
class GivenCode:
    """The names of code that the command line gave, and those of them that were asked for."""

    names: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)
    same_file: bool = False  # a name means the very file that was given, not one of the same name elsewhere

    @property
    def unused(self) -> list[str]:
        return [name for name in self.names if name not in self.used]

    def means(self, given: str, name: str) -> bool:
        """Whether a name in a file means the code that was given under this one; records are often read on another machine."""
        if self.same_file:
            return Path(given).resolve() == Path(name).resolve()
        return Path(given).name == Path(name).name


_given: ContextVar[GivenCode | None] = ContextVar("given code", default=None)


@contextmanager
def only_given(code: GivenCode | None = None) -> Iterator[None]:
    """Inside, this code alone is loaded, by default none; registered names mean what they always do."""
    before = _given.set(code or GivenCode())
    try:
        yield
    finally:
        _given.reset(before)


def permitted(name: str, noun: str, flag: str) -> str:
    """The name under which code may be loaded: the given one with the same file name and the same class, wherever that file is."""
    given = _given.get()
    if given is None:
        return name
    found = next((one for one in given.names if given.means(one, name)), None)
    if found is None:
        what = f"the {noun} '{name[:200]}' is a program that only the file names, and such a program is not run"
        raise RefusedError(what, fix=f"read that program, and name it yourself: {flag} ./{Path(name).name[:200]}")
    given.used.add(found)
    return found


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
