"""The placement rules by name: ours, and what installed packages bring (group ``gantline.placements``). No other module names a rule.

``consolidated``, ``consolidated:preferred``, ``first-free``, ``skew:0.3``, ``random``, ...; rules of users also come as values or files.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.policies.placement.device_rule import DeviceRule
from gantline.policies.placement.rule import PlacementRule, rule_in_python
from gantline.registry import Register

__all__ = ["PlacementRule", "find_placement", "is_rule", "made_rule", "own_rules", "placement_rules"]

_COMPILED, _PICKING = "gantline.policies.placement.compiled", "gantline.policies.placement.picking"
_PLACEMENTS = Register(
    "placements",
    {
        "first-free": f"{_COMPILED}:FIRST_FREE",
        "consolidated": f"{_COMPILED}:CONSOLIDATED",
        "consolidated:preferred": f"{_COMPILED}:PREFERRED",
        "consolidated:tight": f"{_COMPILED}:TIGHT",
        "skew": f"{_COMPILED}:SKEW",
        "first-node": f"{_COMPILED}:FIRST_NODE",
        "random": f"{_COMPILED}:RANDOM",
        "packed": f"{_PICKING}:PACKED",
        "packed-sticky": f"{_PICKING}:PACKED_STICKY",
        "pm-first": f"{_PICKING}:PM_FIRST",
        "pm-first-sticky": f"{_PICKING}:PM_FIRST_STICKY",
        "pal": f"{_PICKING}:PAL",
        "pal-sticky": f"{_PICKING}:PAL_STICKY",
        "bandwidth": f"{_PICKING}:BANDWIDTH",
        "bandwidth-sticky": f"{_PICKING}:BANDWIDTH_STICKY",
    },
    where="--placement",
    aliases={"consolidated:strict": "consolidated"},
)


def own_rules() -> list[str]:
    """The names of our rules."""
    return list(_PLACEMENTS.own())


def placement_rules() -> dict[str, PlacementRule]:
    """All rules, ours and those of installed packages."""
    return {name: find_placement(name) for name in _PLACEMENTS.names()}


def find_placement(name: str) -> PlacementRule:
    """The rule of that name."""
    found = _PLACEMENTS.find(name)
    if found is not None:
        return made_rule(_PLACEMENTS.load(name), name, f"package {found.brought_by}")
    base, _, option = name.partition(":")
    if base == "skew":
        return replace(find_placement("skew"), name=name, skew_limit=_skew_limit(option))
    from gantline.policies.placement.parts.scores import PART_RULES  # kernels, which plain runs do not need

    if name in PART_RULES:
        return PlacementRule(name, "parts of GPUs by a rule of FGD's comparison", counts=True, parts=True, only_parts=True)
    raise NotFoundError(f"no placement '{name}'", where="--placement", fix=f"{near(name, _PLACEMENTS.names())}; or FILE.py:RULE")


def is_rule(value: Any) -> bool:
    """Whether this is a placement rule, or a class of rules in Python."""
    return isinstance(value, (PlacementRule, DeviceRule)) or (isinstance(value, type) and issubclass(value, DeviceRule))


def made_rule(found: Any, name: str, where: str) -> PlacementRule:
    """The rule under that name: from itself, from an object of a class of rules in Python, or from the class."""
    if not is_rule(found):
        kind = "class that is not a DeviceRule" if isinstance(found, type) else type(found).__name__
        raise UsageError(f"'{name}' is a {kind}", where=where, fix="derive it from gantline.DeviceRule")
    if isinstance(found, PlacementRule):
        return found if found.name == name else replace(found, name=name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            what = f"'{name}' cannot be made: {type(error).__name__}: {error}"
            raise UsageError(what, where=where, fix="give every parameter a default, or name an object of the class") from error
    return rule_in_python(found, name)


def _skew_limit(option: str) -> float:
    try:
        limit = float(option)
    except ValueError:
        limit = math.nan
    if not 0.0 <= limit < math.inf:
        raise UsageError(f"the skew limit '{option}' is not a number of zero or more", where="--placement", fix="write skew:0.5")
    return limit
