"""A placement rule in Python: which of the free devices a gang gets.

The engine counts: a gang may start wherever enough devices of its type are free, and the rule says which of them, or that the gang waits.
`docs/placement.md` shows how to write one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.core.facts import NO_FACTS, Facts


@dataclass(frozen=True, slots=True)
class GangRequest:
    """A gang that needs devices."""

    job: str
    gpus: int
    """How many devices it gets, no more and no fewer."""
    model: str = ""
    speed_class: str = ""
    """Which column of a table of device speeds it reads; empty: the first."""
    held: tuple[int, ...] = ()
    """What it held before this decision; empty for one that starts. They are among the free devices."""
    seed: int = 0
    """For rules that draw: the same for the same grant of the same run."""
    bandwidth_sensitive: bool = True
    """Whether it gains from bandwidth between its devices: not where the trace's column `bw_sensitive` is 0."""


@dataclass(frozen=True, slots=True)
class FreeDevices:
    """Devices of one type that the gang may have, in rising order."""

    devices: Sequence[int]
    node: Sequence[int]
    """The node of every device of the cluster, free or not."""

    def __len__(self) -> int:
        return len(self.devices)

    def by_node(self) -> dict[int, list[int]]:
        """The free devices of each node that has any, nodes in rising order."""
        found: dict[int, list[int]] = {}
        for device in self.devices:
            found.setdefault(self.node[device], []).append(device)
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class DeviceRule:
    """Base of placement rules in Python. Subclasses are frozen dataclasses; they keep nothing but their parameters."""

    sticky: ClassVar[bool] = True
    """Gangs that run stay where they are; else all gangs are placed anew at every decision, at the price of a move."""
    together: ClassVar[bool] = False
    """It never spreads a gang that one node has room for."""
    ordered: ClassVar[bool] = False
    """The order of its answer counts, also where a gang begins on the very devices that counting gave it."""
    waits: ClassVar[bool] = False
    """It may answer None: not here, not now. The gang then waits, and its devices are offered to those behind it."""

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int] | None:
        """The devices of the gang, in rank order: `gang.gpus` different ones of `free.devices`, of which there are enough.

        A pure function of both: equal questions get equal answers. A gang that runs (`gang.held`) cannot be made to wait.
        """
        raise TypeError(f"placement rule '{type(self).__name__}' has no choose()")

    def on(self, cluster: Cluster, facts: Facts = NO_FACTS) -> DeviceRule:
        """The rule as it is on this cluster; one that cannot work there raises a `RefusedError`."""
        return self

    def turn(self, gang: GangRequest) -> Any:
        """Gangs are placed in the order of this, equal ones in the order of arrival."""
        return 0


class PlacementError(RefusedError):
    """A placement rule raised, or its answer is not a choice of devices for that gang."""


class LatePlacementError(PlacementError):
    """A placement rule took longer than it may."""


def chosen_devices(name: str, rule: DeviceRule, gang: GangRequest, free: FreeDevices) -> tuple[int, ...] | None:
    """What the rule chooses, if that is possible (None: the gang waits); else a `PlacementError` that names the job."""
    where = f"placement '{name}', job '{gang.job}'"
    try:
        answer = rule.choose(gang, free)
        if answer is None and rule.waits and not gang.held:
            return None
        if answer is None:
            what = "made a gang wait that runs" if rule.waits else "chose nothing"
            raise PlacementError(what, where=where, fix="keep gang.held" if rule.waits else "say waits = True, or choose gang.gpus devices")
        found = tuple(int(device) for device in answer)
    except (KeyboardInterrupt, PlacementError):
        raise
    except BaseException as error:  # sys.exit() too, and whatever else a rule may raise
        raise PlacementError(f"raised {type(error).__name__}: {error}", where=where) from error
    if len(found) != gang.gpus:
        raise PlacementError(f"chose {len(found)} devices for a gang of {gang.gpus}", where=where, fix="choose gang.gpus devices")
    if len(set(found)) < len(found):
        twice = next(device for device in found if found.count(device) > 1)
        raise PlacementError(f"chose device {twice} twice", where=where, fix="choose different devices")
    foreign = set(found).difference(free.devices)
    if foreign:
        raise PlacementError(f"chose device {min(foreign)}, which is not free for it", where=where, fix="choose from free.devices")
    return found
