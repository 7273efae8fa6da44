"""Where parameter servers and workers sit, and what that does to their job: links between them, and machines on which they are slow.

A server sends and receives the parameters of every worker through its own port, so a step waits for the server whose workers are farthest
in the mean (Optimus, EuroSys 2018, theorem 1: few nodes, with equal numbers of both on each). A synchronous job is as slow as its slowest
worker, an asynchronous one loses what that worker does not do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from gantline.core.cluster import Cluster
from gantline.core.rng import stream
from gantline.core.topology import slowest_link
from gantline.models.model import Gangs

SERVER, WORKER = "ps", "worker"


class Straggling(NamedTuple):
    """How likely a job's workers are slow on a node (something else is at work there), and how fast they are then."""

    chance: float = 0.0
    speed: float = 1.0

    def on(self, job: str, node: int) -> float:
        """The speed of a job's workers on a node: always the same one."""
        return self.speed if self.chance > 0.0 and stream(0, node, f"slow/{job}").random() < self.chance else 1.0


NO_STRAGGLERS = Straggling()


class Seated(NamedTuple):
    """The node of each server and of each worker."""

    servers: tuple[int, ...]
    workers: tuple[int, ...]

    @staticmethod
    def of(gangs: Gangs, at: int) -> Seated:
        """Of one gang; without roles it has a server beside every worker."""
        grant = gangs.grants[at]
        if grant is None or not grant.workers:
            nodes = gangs.seats(at)
            return Seated(nodes, nodes)
        servers, workers = (tuple(one.node for one in grant.workers if one.role == role) for role in (SERVER, WORKER))
        return Seated(servers, workers)

    def crossed(self, cluster: Cluster) -> float:
        """How many times longer its exchanges take than between nodes of one rack; 1 where the cluster has no bandwidths."""
        if not cluster.bandwidths.known or not self.servers or not self.workers:
            return 1.0
        where, means = Counter(self.workers), []
        for server in set(self.servers):
            paces = [count * cluster.bandwidths.rack / slowest_link(cluster, (server, node)) for node, count in where.items()]
            means.append(sum(paces) / len(self.workers))
        return max(means)

    def speeds(self, job: str, straggling: Straggling) -> list[float]:
        """The speed of each worker, of one."""
        return [straggling.on(job, node) for node in self.workers]


def left_of(speeds: Sequence[float], mode: str) -> float:
    """What workers of such speeds leave of the speed of a job."""
    if not speeds:
        return 1.0
    return min(speeds) if mode == "sync" else sum(speeds) / len(speeds)
