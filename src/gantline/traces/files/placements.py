"""Placement rules by name or by file: ``consolidated``, ``./mine.py:MyRule``, ``./mine.py`` when the file holds one rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gantline.core.errors import UsageError
from gantline.policies.placement.device_rule import DeviceRule
from gantline.policies.placement.rule import PlacementRule, rule_in_python
from gantline.policies.placement.rules import find_placement, is_rule, made_rule
from gantline.traces.files.python_file import PartKind, part_of_file, python_file

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
