"""Policies by name or by file: ``srtf``, ``./mine.py:MyPolicy``, ``./mine.py`` when the file holds one policy, ``best.yaml`` for a policy
with settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeGuard

from gantline.core.errors import UsageError
from gantline.core.policy import Policy, build
from gantline.policies.registry import find_policy
from gantline.traces.files.given_code import GivenCode, permitted
from gantline.traces.files.python_file import PartKind, bounded, part_of_file, python_file

_POLICY_IN_FILE = PartKind(
    "policy", "policies", "--policy", lambda value: isinstance(value, type) and issubclass(value, Policy), "gantline.Policy"
)


def is_settings_file(name: str) -> bool:
    """Whether this names a YAML file that holds a policy with its settings."""
    return name.endswith((".yaml", ".yml"))


def policy_file(name: str) -> str:
    """The file that a policy's name points at, ``FILE.py:CLASS`` or settings; empty for registered ones."""
    if is_settings_file(name):
        return name
    return python_file(name)


def opened(name: str) -> tuple[str, dict[str, str]]:
    """The policy and the settings that a name means: those of a file of settings, else the name and none."""
    if not is_settings_file(name):
        return name, {}
    from gantline.traces.files.policy_settings import read_settings_file

    return read_settings_file(permitted(name, "policy", "--policy"))


def code_named(*names: str | None, same_file: bool = False) -> GivenCode:
    """The code that these names of the command line mean, that in a file of settings too."""
    given = [name for name in names if name]
    return GivenCode(tuple(dict.fromkeys((*given, *(opened(name)[0] for name in given)))), same_file=same_file)


def load_policy(name: str, settings: Mapping[str, object] | None = None) -> Policy:
    """The policy that a name or a file means, with its parameters; ``@FILE`` stands for the numbers in a file."""
    name, kept = opened(name)
    return _made(policy_class(name), {**kept, **(settings or {})})


def policy_of(given: Policy | type[Policy] | str, settings: Mapping[str, object] | None = None) -> Policy:
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


def is_policy(given: object) -> TypeGuard[Policy | type[Policy]]:
    """Whether this is a policy, or a class of policies."""
    return isinstance(given, Policy) or (isinstance(given, type) and issubclass(given, Policy))


def policy_class(name: str) -> type[Policy]:
    """The class behind a registered name, behind ``FILE.py:CLASS``, or behind a file of settings."""
    name, _ = opened(name)
    if not python_file(name):
        return find_policy(name)
    found: type[Policy] = part_of_file(name, _POLICY_IN_FILE).thing
    return found


def _made(kind: type[Policy], settings: Mapping[str, object] | None) -> Policy:
    """A policy of this class; how long ours take is known."""
    given = read_settings(settings or {})
    if kind.__module__.startswith("gantline."):
        return build(kind, given)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__name__
    return bounded(lambda: build(kind, given), Path(file), f"making {kind.__name__}")


def read_settings(settings: Mapping[str, object]) -> dict[str, object]:
    """Parameters, with ``@FILE`` replaced by the numbers in the file's first column (a heading is skipped)."""
    values: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, str) and value.startswith("@"):
            value = _numbers(name, Path(value[1:]))
        values[name] = value
    return values


def _numbers(name: str, path: Path) -> tuple[float, ...]:
    try:
        if path.exists() and not path.is_file():  # a pipe or a terminal would be waited for
            raise OSError("it is not a file")
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
