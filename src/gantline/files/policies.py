"""Policies by name or by file: ``srtf``, ``./mine.py:MyPolicy``, ``./mine.py`` when the file holds one policy, ``best.yaml`` for a policy
with settings."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from contextvars import ContextVar
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard, TypeVar

from gantline._alarm import TimeOverError, with_alarm
from gantline.core.errors import GantlineError, NotFoundError, UsageError, near
from gantline.core.policy import Policy, build
from gantline.policies.registry import find_policy

LOADING = 60.0
"""Seconds on the clock for importing a policy file with whatever it imports, and for making a policy of it."""
Answer = TypeVar("Answer")
_being_loaded: ContextVar[frozenset[Path]] = ContextVar("being loaded", default=frozenset())


def is_settings_file(name: str) -> bool:
    """Whether this names a YAML file that holds a policy with its settings."""
    return name.endswith((".yaml", ".yml"))


def policy_file(name: str) -> str:
    """The file that a policy's name points at, ``FILE.py:CLASS`` or settings; empty for registered ones."""
    if is_settings_file(name):
        return name
    return name.partition(".py")[0] + ".py" if ".py" in name else ""


def opened(name: str) -> tuple[str, dict[str, str]]:
    """The policy and the settings that a name means: those of a file of settings, else the name and none."""
    if not is_settings_file(name):
        return name, {}
    from gantline.files.policy_settings import read_settings_file

    return read_settings_file(name)


def load_policy(name: str, settings: Mapping[str, Any] | None = None) -> Policy:
    """The policy that a name or a file means, with its parameters; ``@FILE`` stands for the numbers in a file."""
    name, kept = opened(name)
    return _made(policy_class(name), {**kept, **(settings or {})})


def policy_of(given: Policy | type[Policy] | str, settings: Mapping[str, Any] | None = None) -> Policy:
    """A policy from its name, its file, its class or itself; one that exists has its parameters already."""
    if isinstance(given, str):
        return load_policy(given, settings)
    if not is_policy(given):
        fix = "give a name from 'gantline policy list', FILE.py:CLASS, or an object of a class of yours"
        raise UsageError(f"{given!r:.60} is no policy", where="policy", fix=fix)
    if isinstance(given, type):
        return _made(given, settings)
    if settings:
        raise UsageError("parameters for a policy that has them already", where="settings", fix=f"write {type(given).__name__}(...)")
    return given


def is_policy(given: Any) -> TypeGuard[Policy | type[Policy]]:
    """Whether this is a policy, or a class of policies."""
    return isinstance(given, Policy) or (isinstance(given, type) and issubclass(given, Policy))


def policy_class(name: str) -> type[Policy]:
    """The class behind a registered name, behind ``FILE.py:CLASS``, or behind a file of settings."""
    name, _ = opened(name)
    file, _, attribute = name.partition(":") if ".py" in name else ("", "", "")
    if not file.endswith(".py"):
        return find_policy(name)
    module = load_module(Path(file))
    return _find(module, attribute, file)


def load_module(path: Path, flag: str = "--policy") -> ModuleType:
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
        _bounded(lambda: exec(loader.source_to_code(loader.get_data(loader.path), loader.path), vars(module)), path, "loading it")
    finally:
        _being_loaded.reset(before)
    return module


def _made(kind: type[Policy], settings: Mapping[str, Any] | None) -> Policy:
    """A policy of this class; how long ours take is known."""
    given = read_settings(settings or {})
    if kind.__module__.startswith("gantline."):
        return build(kind, given)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__name__
    return _bounded(lambda: build(kind, given), Path(file), f"making {kind.__name__}")


def _bounded(call: Callable[[], Answer], path: Path, what: str) -> Answer:
    """What a policy file does before it is asked anything: in bounded time, apart from stdout, and told with its line if it goes wrong."""
    try:
        with redirect_stdout(sys.stderr):  # stdout is for results
            return with_alarm(call, LOADING)
    except (GantlineError, KeyboardInterrupt):
        raise
    except SyntaxError as error:
        raise UsageError(f"syntax error: {error.msg}", where=f"{error.filename}:{error.lineno}", fix="correct that line") from None
    except TimeOverError as error:
        raise UsageError(f"{what} takes longer than {LOADING:g} s", where=_place(error, path), fix="do long work in decide()") from None
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


def _find(module: ModuleType, attribute: str, file: str) -> type[Policy]:
    own = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Policy) and value.__module__ == module.__name__
    }
    if not attribute:
        if len(own) == 1:
            return next(iter(own.values()))
        what = "holds no policy" if not own else "holds several policies: " + ", ".join(own)
        raise UsageError(what, where=file, fix=f"write {file}:NAME" if own else "derive a class from gantline.Policy")
    found = getattr(module, attribute, None)
    if found is None:
        raise NotFoundError(f"no class '{attribute}'", where=file, fix=near(attribute, own) if own else "the file holds no policy")
    if not (isinstance(found, type) and issubclass(found, Policy)):
        kind = "class that is not a Policy" if isinstance(found, type) else type(found).__name__
        raise UsageError(f"'{attribute}' is a {kind}", where=file, fix="derive it from gantline.Policy or gantline.OrderPolicy")
    return found


def read_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters, with ``@FILE`` replaced by the numbers in the file's first column (a heading is skipped)."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, str) and value.startswith("@"):
            value = _numbers(name, Path(value[1:]))
        values[name] = value
    return values


def _numbers(name: str, path: Path) -> tuple[float, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot be read: {error}", where=f"--set {name}=@{path}", fix="name a text file with one number per line"
        ) from None
    numbers = []
    for line, text in enumerate(lines, start=1):
        cell = text.split(",")[0].strip()
        try:
            numbers.append(float(cell))
        except ValueError:
            if line > 1 and cell:
                raise UsageError(f"'{cell}' is not a number", where=f"{path}:{line}", fix="one number per line") from None
    return tuple(numbers)
