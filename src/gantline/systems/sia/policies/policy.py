"""`sia`: each round a configuration of GPU type, nodes and GPUs for every job, by an integer program over goodputs (SOSP 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Option
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.plan import Assignments, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.model import overrides
from gantline.policies.elastic.layouts import LAYOUT, LAYOUTS, MOVE_COST, NamedDevices, TypeLayout
from gantline.systems.sia.policies.program import Configurations, choose_configurations, costs, normalised, restart_factor

# The options of jobs as columns of Sia's program: those that they list, and sizes from the range that they accept.
#
# Of a range come the configurations of the paper (section 3.3: powers of two within a node, whole nodes beyond), its
# ends and the size asked for. That keeps programs small, and leaves a job of one to three GPUs its third.


DERIVED = -1  # in place of an option's row: the job accepts this size and does not list it


@dataclass(frozen=True, slots=True)
class SiaVariants:
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


def read_variants(snapshot: Snapshot, reserved: Bools) -> SiaVariants:
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
    return SiaVariants(Configurations((), group, ones, count, ones == 1, use, capacity), offered, option, rate)


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


# Sia where a job's configurations are its sizes and their believed speeds its goodputs: any regime but Sia's own.


def _named_devices(snapshot: Snapshot, kinds: Ints, sizes: Ints, runs: Ints, layout: str, move_cost: str) -> NamedDevices:
    """Devices of the jobs that change or move, by job; those that are stopped, or go to another type, leave theirs to the others."""
    jobs, found = snapshot.jobs, dict[int, tuple[int, ...]]()
    kind, gpus = np.full(len(jobs), -1, dtype=np.int64), np.zeros(len(jobs), dtype=np.int64)
    kind[runs], gpus[runs] = kinds, sizes
    settled = (jobs.phase == PENDING) | (jobs.phase == STARTING) | (jobs.phase == RUNNING)
    for one in range(len(snapshot.cluster.types)):
        mine = np.flatnonzero(settled & ((kind == one) | (jobs.running & (jobs.type == one))))
        placed = TypeLayout(snapshot, one, mine, np.where(kind[mine] == one, gpus[mine], 0), jobs.locked[mine]).devices(layout, move_cost)
        found |= {int(mine[place]): devices for place, devices in placed.items()}
    return found


def _believed(snapshot: Snapshot, variants: SiaVariants, unit: Floats) -> tuple[Floats, Floats]:
    """Goodputs as the run's model gives them to policies, where it does; a job that has not run yet is offered its least of each type."""
    model = snapshot.performance
    if not overrides(model, "goodputs"):
        return variants.rate, unit
    cluster, columns, found = snapshot.cluster, variants.columns, np.zeros_like(variants.rate)
    node = np.zeros(len(cluster.types), dtype=np.int64)
    np.maximum.at(node, cluster.node_type, np.bincount(cluster.device_node, minlength=len(cluster.node_type)))
    for row, name in enumerate(snapshot.jobs.ids):
        for group in np.unique(columns.group).tolist():
            mine = np.flatnonzero((columns.group == group) & variants.offered[row])
            if not len(mine):
                continue
            sizes = columns.gpus[mine]
            given = model.goodputs(snapshot.learned, name, group, sizes)
            if given is None:
                found[row, mine[sizes == sizes.min()]] = 1.0
            else:
                found[row, mine] = given[(sizes > node[group]).astype(np.int64), np.arange(len(sizes))]
    return found, np.ones_like(unit)


# `sia`: each round a configuration of GPU type, nodes and GPUs for every job, by an integer program over goodputs (SOSP 2023).

FITS = ("artifact", "compiled")
PLACEMENTS = ("sticky", "fast")


@dataclass(frozen=True)
class Sia(Policy):
    """Goodput per configuration to the power p, at least cost within the GPUs of each type; restarts are discounted.

    In the regime `sia`, and on the engine with profiles, goodputs are believed: models fitted to what each job has shown. Elsewhere the
    options of a job are its configurations, and their listed speeds its goodputs.
    """

    believes = True
    keeps_reservations = True
    node_sizes = True
    usual_round = 60.0  # seconds; on the engine it decides whenever it is asked
    name = "sia"
    paper = (
        "Jayaram Subramanya, Arfeen, Lin, Qiao, Jia, Ganger: Sia: Heterogeneity-aware, goodput-optimized ML-cluster scheduling (SOSP 2023)"
    )

    p: float = parameter(-0.5, "power of goodputs in the objective: below 0 small jobs count more; 0: logarithms", low=-10.0, high=10.0)
    lambda_n: float = parameter(1.1, "cost of leaving a job idle, above 1 (its least configuration costs 1)", above=1.0)
    restart: float = parameter(30.0, "seconds a restart is thought to cost, where the model's own are not known", low=0.0, unit="seconds")
    projection: bool = parameter(True, "whether types that a job has not run on are projected from others")
    share_limit: bool = parameter(True, "whether the most replicas are those of the type on which it ran widest")
    batch_cap: bool = parameter(True, "whether adaptive jobs are thought to stay below the batch asked for")
    fit: str = parameter("artifact", "how models are fitted: 'artifact' stops where the artifact does, 'compiled'", one_of=FITS)
    placement: str = parameter("sticky", "'sticky' moves as few as it can, 'fast' places all jobs anew each round", one_of=PLACEMENTS)
    layout: str = parameter("engine", LAYOUT + " (regimes of the engine; not 'sia')", one_of=LAYOUTS)
    move_cost: str = parameter("auto", MOVE_COST, one_of=("auto",), low=0.0, finite=True, unit="seconds")
    reserved: str = parameter("", "jobs that have their only configuration whatever it costs, joined by |; empty: as the trace says")

    def decide(self, snapshot: Snapshot) -> Plan:
        """The sizes that cost least together; a locked job keeps its own, and one with a reservation has what is reserved."""
        jobs = snapshot.jobs
        if not len(jobs):
            return Plan.assign(Assignments(np.zeros(0, dtype=np.int64)))
        names = [name for name in self.reserved.split("|") if name]
        kept = (np.isin(jobs.ids, names) if names else jobs.reserved > 0) & ~jobs.locked
        variants = read_variants(snapshot, kept)
        columns, holds = variants.columns, variants.held(snapshot)
        unit = np.broadcast_to(np.maximum(columns.gpus, 1).astype(np.float64), variants.rate.shape)
        goodput, unit = _believed(snapshot, variants, unit)
        factor = restart_factor(snapshot.now - jobs.arrival, jobs.restarts, np.full(len(jobs), self.restart))
        cost = costs(normalised(goodput, unit), factor, holds, jobs.weight, self.p)
        forced = np.where(jobs.locked, holds, -1)
        if kept.any():
            only = kept & (variants.offered.sum(axis=1) == 1)
            forced[only] = variants.offered[only].argmax(axis=1)
        choice = choose_configurations(cost, columns, self.lambda_n * jobs.weight, forced)
        chosen = choice.column
        runs = np.flatnonzero(chosen >= 0)
        rows, kind, gpus = variants.option[runs, chosen[runs]], columns.group[chosen[runs]], columns.gpus[chosen[runs]]
        named: dict[str, Any] = {"option": np.where(rows == DERIVED, -1, rows - jobs.option_first[runs])}
        if (rows == DERIVED).any():
            named |= {"gpus": np.where(rows == DERIVED, gpus, -1), "type": np.where(rows == DERIVED, kind, -1)}
        placed = _named_devices(snapshot, kind, gpus, runs, self.layout, self.move_cost) if self.layout != "engine" else {}
        if placed:
            named["devices"] = [placed.get(job, ()) for job in runs.tolist()]
        return Plan.assign(Assignments(runs, **named), notes=(choice.note,) if choice.note else ())
