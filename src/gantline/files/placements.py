"""Placement rules by name or by file: ``consolidated``, ``./mine.py:MyRule``, ``./mine.py`` when the file holds one rule."""

from __future__ import annotations

from pathlib import Path

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.files.policies import load_module
from gantline.placement.device_rule import DeviceRule
from gantline.placement.rules import PlacementRule, find_placement, rule_in_python


def placement_file(name: str) -> str:
    """The file that a rule's name points at; empty for rules of ours."""
    return name.partition(".py")[0] + ".py" if ".py" in name else ""


def from_anywhere(name: str) -> str:
    """The same rule for a process in another folder."""
    file = placement_file(name)
    return f"{Path(file).absolute()}{name[len(file) :]}" if file else name


def load_placement(name: str) -> PlacementRule:
    """The rule that a name or a file means."""
    file = placement_file(name)
    if not file:
        return find_placement(name)
    module = load_module(Path(file), "--placement")
    own = {key: value for key, value in vars(module).items() if _is_rule(value) and _is_from(value, module.__name__)}
    attribute = name[len(file) :].removeprefix(":")
    if not attribute:
        if len(own) != 1:
            what = "holds several placement rules: " + ", ".join(own) if own else "holds no placement rule"
            raise UsageError(what, where=file, fix=f"write {file}:NAME" if own else "derive a class from gantline.DeviceRule")
        (attribute,) = own
    found = getattr(module, attribute, None)
    if found is None:
        fix = near(attribute, own) if own else "the file holds no placement rule"
        raise NotFoundError(f"no placement rule '{attribute}'", where=file, fix=fix)
    if not _is_rule(found):
        kind = "class that is not a DeviceRule" if isinstance(found, type) else type(found).__name__
        raise UsageError(f"'{attribute}' is a {kind}", where=file, fix="derive it from gantline.DeviceRule")
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            what = f"'{attribute}' cannot be made: {type(error).__name__}: {error}"
            raise UsageError(what, where=file, fix="give every parameter a default, or name an object of the class") from error
    return rule_in_python(found, name)


def placement_of(given: PlacementRule | DeviceRule | str) -> PlacementRule:
    """A rule from its name, its file, an object of a class of yours, or itself."""
    if isinstance(given, PlacementRule):
        return given
    if isinstance(given, DeviceRule):
        return rule_in_python(given, type(given).__name__)
    if isinstance(given, str):
        return load_placement(given)
    fix = "give a name from 'gantline placement list', FILE.py:RULE, or an object of a class of yours"
    raise UsageError(f"{given!r:.60} is no placement rule", where="placement", fix=fix)


def _is_rule(value: object) -> bool:
    return isinstance(value, DeviceRule) or (isinstance(value, type) and issubclass(value, DeviceRule))


def _is_from(value: object, module: str) -> bool:
    return (value if isinstance(value, type) else type(value)).__module__ == module
