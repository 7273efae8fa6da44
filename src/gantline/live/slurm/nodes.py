"""The nodes of an allocation as the engine sees them, by their names in Slurm: which come, go, drain and return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError
from gantline.live.bulletins import NodeNews, NodeState
from gantline.live.slurm.allocation import AllocatedNode, SlurmAllocation
from gantline.live.slurm.listings import CLOSED, GONE

DRAINS = "Slurm drains it"


@dataclass
class SlurmNodes:
    """Nodes by name; `see` is called from one thread."""

    job: str
    present: dict[str, AllocatedNode] = field(default_factory=dict)
    drained: set[str] = field(default_factory=set)

    @property
    def cluster(self) -> Cluster:
        return Cluster(tuple(one.node for _, one in sorted(self.present.items())), spec="slurm")

    def see(self, found: SlurmAllocation, suspects: Iterable[str] = ()) -> list[NodeNews]:
        """What is new. `suspects` are nodes on which a gang has fallen silent: lost, unless slurmd answers there."""
        there = {name: one for name, one in found.nodes.items() if one.state.isdisjoint(GONE)}
        silent = {name for name in suspects if name in there and not there[name].answers()}
        # one that Slurm has not given up yet does not return while it does not answer
        silent |= {name for name in there if name not in self.present and "NOT_RESPONDING" in there[name].state}
        there = {name: one for name, one in there.items() if name not in silent}
        news = [self._lose(name, found, name in silent) for name in list(self.present) if name not in there]
        for name, one in there.items():
            is_new, was_drained = name not in self.present, name in self.drained
            self.present[name] = one
            if one.state & CLOSED:
                self.drained.add(name)
                news += [NodeNews(name, NodeState.DRAINED, one.node, DRAINS)] if is_new or not was_drained else []
            elif is_new or was_drained:
                self.drained.discard(name)
                news.append(NodeNews(name, NodeState.UP, one.node))
        return news

    def close(self, why: str) -> list[NodeNews]:
        """Nothing begins any more on any node; what is new."""
        news = [NodeNews(name, NodeState.DRAINED, one.node, why) for name, one in self.present.items() if name not in self.drained]
        self.drained.update(self.present)
        return news

    def _lose(self, name: str, found: SlurmAllocation, is_silent: bool) -> NodeNews:
        del self.present[name]
        self.drained.discard(name)
        if found.is_over:
            return NodeNews(name, NodeState.LOST, why=f"allocation {found.job} is over ({found.state})")
        return NodeNews(name, NodeState.LOST, why="neither its part of a gang nor slurmd answers" if is_silent else "Slurm has given it up")


def check_devices(devices: str | None) -> bool:
    """Whether CPUs are devices; anything but ``cpu`` is refused, because an allocation says itself what it has."""
    if devices in (None, ""):
        return False
    if devices != "cpu":
        fix = "leave it out for the GPUs of the allocation, or write --devices cpu: CPUs of nodes without GPUs are slots"
        raise UsageError(f"'{devices}': the devices of an allocation are those that Slurm gave it", where="--devices", fix=fix)
    return True
