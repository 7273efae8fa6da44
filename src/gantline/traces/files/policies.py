"""Policies and placement rules by name or by file.

``srtf``, ``./mine.py:MyPolicy``, ``./mine.py`` when the file holds one policy, and ``best.yaml`` for a policy with
settings, as `gantline tune` writes it: such a file has the keys ``policy`` and ``settings``: ``policy: las`` and
below it ``settings: {threshold: 7200}``. Placement rules likewise: ``consolidated``, ``./mine.py:MyRule``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

import yaml

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.fields import mapping, plain_values, text
from gantline.core.policy import Policy, build
from gantline.policies.placement.device_rule import DeviceRule
from gantline.policies.placement.rules import PlacementRule, find_placement, is_rule, made_rule, rule_in_python
from gantline.policies.registry import find_policy
from gantline.traces.files.marked_yaml import load_marked
from gantline.traces.files.python_file import GivenCode, PartKind, bounded, part_of_file, permitted, python_file

_KEYS = ("policy", "settings")


def read_settings_file(name: str) -> tuple[str, dict[str, str]]:
    """The policy and the settings that a file holds."""
    path = Path(name)
    try:
        document = load_marked(path.read_text(encoding="utf-8"), name)
    except FileNotFoundError:
        raise NotFoundError("no such file", where=name, fix="check the path given as --policy") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=name) from None
    with document.at():
        found = mapping(document.value, "policy file")
        for key in found:
            if key not in _KEYS:
                raise UsageError(f"unknown key '{key}'", fix=near(key, _KEYS))
        policy, settings = text(found.get("policy", ""), "policy"), mapping(found.get("settings") or {}, "settings")
        if policy.endswith((".yaml", ".yml")):
            raise UsageError("names another file of settings", where="policy", fix="name a policy, or FILE.py:CLASS")
    if ".py" in policy:
        policy = os.path.normpath(path.parent / policy)  # as seen from the file's own folder
    return policy, {key: _as_typed(value) for key, value in settings.items()}


def _as_typed(value: object) -> str:
    """A value as the command line has it, so that it is checked in the same way."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def settings_text(policy: str, settings: Mapping[str, object], folder: Path, remark: str = "") -> str:
    """What such a file in this folder says; lines of the remark are comments at its top."""
    if ".py" in policy:
        policy = os.path.relpath(policy, folder)
    body = yaml.safe_dump({"policy": policy, "settings": plain_values(settings)}, sort_keys=False, allow_unicode=True)
    return "".join(f"# {line}\n" for line in remark.splitlines()) + body


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
    for line, row in enumerate(lines, start=1):
        cell = row.split(",")[0].strip()
        try:
            numbers.append(float(cell))
        except ValueError:
            if line > 1 and cell:
                raise UsageError(f"'{cell}' is not a number", where=f"{path}:{line}", fix="one number per line") from None
    return tuple(numbers)


GivenPlacement = PlacementRule | DeviceRule | str
"""A rule, an object of a class of rules, or a name."""
_RULE_IN_FILE = PartKind("placement rule", "placement rules", "--placement", is_rule, "gantline.DeviceRule")


def from_anywhere(name: str) -> str:
    """The same rule for a process in another folder."""
    file = python_file(name)
    return f"{Path(file).absolute()}{name[len(file) :]}" if file else name


def load_placement(name: str) -> PlacementRule:
    """The rule that a name or a file means."""
    if not python_file(name):
        return find_placement(name)
    found = part_of_file(name, _RULE_IN_FILE)
    return replace(made_rule(found.thing, found.attribute, found.file), name=name)


def placement_of(given: GivenPlacement) -> PlacementRule:
    """A rule from its name, its file, an object of a class of yours, or itself."""
    if isinstance(given, PlacementRule):
        return given
    if isinstance(given, DeviceRule):
        return rule_in_python(given, type(given).__name__)
    if isinstance(given, str):
        return load_placement(given)
    fix = "give a name from 'gantline placement list', FILE.py:RULE, or an object of a class of yours"
    raise UsageError(f"{given!r:.60} is no placement rule", where="placement", fix=fix)
