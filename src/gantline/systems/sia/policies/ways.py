"""The options of jobs as columns of Sia's program: those that they list, and sizes from the range that they accept.

Of a range come the configurations of the paper (section 3.3: powers of two within a node, whole nodes beyond), its ends and the size asked
for. That keeps programs small, and leaves a job of one to three GPUs its third.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Option
from gantline.core.snapshot import Snapshot
from gantline.systems.sia.policies.configurations import Configurations

DERIVED = -1  # in place of an option's row: the job accepts this size and does not list it


@dataclass(frozen=True, slots=True)
class SiaWays:
    """Columns of type and count; per job and column whether it may have it, the row of its option, and the speed believed."""

    columns: Configurations
    offered: Bools
    option: Ints  # row of the option table, or DERIVED
    rate: Floats

    def held(self, snapshot: Snapshot) -> Ints:
        """The column that each job holds; -1: none."""
        jobs = snapshot.jobs
        now = np.where(jobs.running & (jobs.option >= 0), jobs.option_first + jobs.option, -2)
        derived = self.offered & (self.option == DERIVED) & jobs.running[:, None]
        same = (self.columns.group == jobs.type[:, None]) & (self.columns.gpus == jobs.held[:, None])
        match = (self.option == now[:, None]) | (derived & same)
        return np.where(match.any(axis=1), match.argmax(axis=1), -1)


def read_ways(snapshot: Snapshot, reserved: Bools) -> SiaWays:
    """One column per type and count that any job lists or accepts; a job with a reservation has what it lists."""
    table, types = snapshot.options, len(snapshot.cluster.types)
    owner, row = _listed(snapshot)
    ranged = np.flatnonzero((snapshot.jobs.min_gpus < snapshot.jobs.max_gpus) & ~reserved)
    more_owner, more_kind, more_gpus, more_rate = _in_ranges(snapshot, ranged)
    kind, gpus = np.concatenate([table.I[Option.TYPE, row], more_kind]), np.concatenate([table.I[Option.GPUS, row], more_gpus])
    width = int(gpus.max(initial=0)) + 1  # type and count as one number: pairs take NumPy ten times as long
    found, column = np.unique(kind * width + gpus, return_inverse=True)
    group, count = found // width, found % width
    use: Floats = np.zeros((len(found), types))
    use[np.arange(len(found)), group] = count
    shape = len(snapshot.jobs), len(found)
    offered, option, rate = np.zeros(shape, dtype=np.bool_), np.full(shape, DERIVED, dtype=np.int64), np.zeros(shape)
    cells = np.concatenate([owner, more_owner])[::-1], column[::-1]  # the first of several alike
    offered[cells] = True
    option[cells] = np.concatenate([row, np.full(len(more_owner), DERIVED)])[::-1]
    rate[cells] = np.concatenate([table.F[Option.RATE, row], more_rate])[::-1]
    capacity = snapshot.cluster.capacity.astype(np.float64)
    ones = np.ones(len(found), dtype=np.int64)
    return SiaWays(Configurations((), group, ones, count, ones == 1, use, capacity), offered, option, rate)


def _listed(snapshot: Snapshot) -> tuple[Ints, Ints]:
    """Job and row of every option."""
    count = snapshot.jobs.option_count
    owner = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return owner, np.repeat(snapshot.jobs.option_first, count) + within


def _in_ranges(snapshot: Snapshot, ranged: Ints) -> tuple[Ints, Ints, Ints, Floats]:
    """Job, type, count and believed speed of sizes that these jobs accept without listing them."""
    jobs, cluster = snapshot.jobs, snapshot.cluster
    found: list[tuple[Ints, Ints, Ints, Floats]] = [(ranged[:0], ranged[:0], ranged[:0], np.zeros(0))]
    node = np.bincount(cluster.device_node, minlength=len(cluster.node_type))
    for kind, capacity in enumerate(cluster.capacity.tolist() if len(ranged) else ()):
        sizes = jobs.sizes_table(kind, ranged, capacity)
        owner = np.repeat(ranged, np.diff(sizes.first))
        widest = int(node[cluster.node_type == kind].max(initial=0))
        usual = np.zeros(max(capacity, widest) + 1, dtype=np.bool_)  # some devices of a node may be out of order
        usual[_usual(widest, capacity)] = True
        ends = (sizes.size == jobs.min_gpus[owner]) | (sizes.size == jobs.max_gpus[owner]) | (sizes.size == jobs.gpus[owner])
        taken = (sizes.option < 0) & (usual[sizes.size] | ends)
        found.append((owner[taken], np.full(int(taken.sum()), kind), sizes.size[taken], sizes.rate[taken]))
    owners, kinds, gpus, rates = zip(*found)
    return np.concatenate(owners), np.concatenate(kinds), np.concatenate(gpus), np.concatenate(rates)


def _usual(node: int, capacity: int) -> list[int]:
    """Powers of two within a node, whole nodes beyond it."""
    return [1 << k for k in range(node.bit_length()) if 1 << k < node] + list(range(node, capacity + 1, max(node, 1)))
