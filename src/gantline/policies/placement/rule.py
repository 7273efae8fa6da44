"""What a placement rule is: a value with its name, its choice and the properties that others may count on.

The engine, its loops and the drivers ask for properties and never for names; the conformance suite holds every rule to its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from gantline.policies.placement import fit
from gantline.policies.placement.device_rule import DeviceRule


class Together(IntEnum):
    """Which gangs are better off on few nodes, so that growing in place is compared with moving."""

    NEVER = 0
    SENSITIVE = 1  # gangs with models that are slower when spread
    ALWAYS = 2


@dataclass(frozen=True)
class PlacementRule:
    """A placement rule: compiled (`code` says which choice of `fit.choose`) or in Python (`device_rule`)."""

    name: str
    what: str = ""  # in a line
    code: int = fit.FIRST_FREE  # of a rule in Python: how the walk counts
    whole: bool = True  # gangs larger than a node take whole idle nodes
    skew_limit: float | None = None  # models with a larger skew are kept together; None: the rule does not look at models
    device_rule: DeviceRule | None = None  # picks single devices; the compiled walk then only counts
    monotone: bool = True  # a place for a gang implies one for every smaller gang; under `one_node` gangs up to a node are treated apart
    together: Together = Together.NEVER
    one_node: bool = False  # gangs no larger than a node sit on one, or wait
    counts: bool = False  # a gang fits wherever enough devices are free
    on_records: bool = False  # loops over dense records know it
    sticky: bool = True  # gangs that run stay where they are
    parts: bool = False  # it seats parts of GPUs, under policies that share devices
    only_parts: bool = False  # and no gangs under any other

    @property
    def picks(self) -> bool:
        """Whether it picks single devices."""
        return self.device_rule is not None

    @property
    def may_wait(self) -> bool:
        """Whether it may make a gang wait although enough devices are free for it, which only its choice shows."""
        return self.device_rule is not None and self.device_rule.waits

    @property
    def properties(self) -> dict[str, bool | str]:
        """What may be counted on, by name."""
        together = self.together if self.device_rule is None else self.device_rule.together * Together.ALWAYS
        plain = {name: getattr(self, name) for name in ("monotone", "one_node", "counts", "sticky")}
        return {**plain, "together": Together(together).name.lower(), "compiled": not self.picks}


def rule_in_python(rule: DeviceRule, name: str) -> PlacementRule:
    """A rule that picks single devices as a value."""
    what = " ".join((type(rule).__doc__ or "").split("\n\n")[0].split()).removesuffix(".")
    return PlacementRule(name, what[:1].lower() + what[1:], device_rule=rule, counts=not rule.waits, sticky=rule.sticky)
