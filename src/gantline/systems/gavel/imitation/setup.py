"""A run in Gavel's rounds: from a simulation to the arrays of the loop, what it has become so far, and its checkpoints."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Device, Job, Node, Option
from gantline.core.errors import RefusedError
from gantline.core.memory import decode, encode
from gantline.core.policy import parameters
from gantline.core.tables import Tables
from gantline.engine.drivers.simulation import Checkpoints, Simulation
from gantline.engine.log import Log
from gantline.engine.policy_failures import Incident
from gantline.models.sharing.throughput_model import ThroughputModel
from gantline.systems.gavel.imitation.checkpoints import read_checkpoint, write_checkpoint
from gantline.systems.gavel.imitation.tables import (
    GavelDevices,
    GavelJobs,
    GavelPairs,
    GavelRules,
    RoundCount,
    RoundStep,
    RoundTime,
    more_room,
    new_tasks,
)
from gantline.systems.gavel.policies.instance import Instance, Pairs
from gantline.systems.gavel.policies.policy import GavelPolicy, PackingPolicy
from gantline.systems.gavel.policies.question import pairs_of
from gantline.systems.gavel.regime import REGIME


@dataclass(frozen=True)
class GavelSetup:
    """A run that is about to begin: what is fixed, what is counted, and how shares are asked for."""

    policy: GavelPolicy
    types: tuple[str, ...]  # by name, as the policy sees them
    rules: GavelRules
    jobs: GavelJobs
    pairs: GavelPairs
    devices: GavelDevices
    weight: Floats
    extras: dict[str, Any]
    order: Ints  # in which an aware policy fills the types

    def instance(self, rows: Ints, now: float) -> Instance:
        """The question about these jobs. The arrays were checked when the run was set up."""
        jobs, extras = self.jobs, self.extras
        key, scale, speed = jobs.key[rows], jobs.I[Job.GPUS][rows], jobs.speed[rows]
        deadline = jobs.F[Job.DEADLINE][rows] - now
        owner = extras.get("entity")
        return Instance(
            types=self.types,
            capacity=self.devices.capacity.astype(np.float64),
            jobs=tuple(rows.tolist()),
            throughput=speed,
            scale=scale.astype(np.float64),
            weight=self.weight[rows],
            pairs=Pairs(*pairs_of(key, scale, self.pairs.believed, speed)) if self.rules.packs else None,
            elapsed=np.maximum(now - jobs.F[Job.ARRIVAL][rows], 0.0),
            steps=jobs.steps[rows] - jobs.done[rows],
            price=None if "price" not in extras else np.array(extras["price"]),
            deadline=np.where(np.isnan(deadline), np.inf, deadline),
            entities=extras.get("entities", ()),
            entity=None if owner is None else owner[rows],
        )


def set_up(simulation: Simulation) -> GavelSetup:
    """The arrays of a run; what this regime does not know is refused."""
    policy = _checked(simulation)
    tables, state = simulation.state.tables, simulation.state
    names = tables.cluster.types
    code = np.array(sorted((j for j in range(len(names)) if tables.cluster.gpus_of(names[j])), key=lambda j: names[j]), dtype=np.int64)
    types = tuple(names[j] for j in code)
    option = _options(tables)[:, code]
    model = tables.performance if isinstance(tables.performance, ThroughputModel) else None
    rows = tables.F.shape[1]
    if model is None:
        key, steps = np.zeros(rows, dtype=np.int64), tables.F[Job.WORK].copy()
        speed = across = np.where(option >= 0, tables.options.F[Option.RATE][option], 0.0)
        nothing = np.zeros((1, 1, len(code)))
        pairs = GavelPairs(nothing, nothing, nothing)
    else:
        place = model.rows(tables.ids)
        key, steps = model.key[place], (model.unit[place] * tables.F[Job.WORK] if tables.steps is None else tables.steps.copy())
        speed, across = (np.where(option >= 0, alone[key][:, code], 0.0) for alone in (model.alone, model.alone_across))
        pairs = _pairs(policy, model, place, code, state.seed)
    low, high = simulation.track or (0, rows)
    users, queues = ([names[k] for k in tables.I[column]] for names, column in ((tables.users, Job.USER), (tables.queues, Job.QUEUE)))
    jobs = GavelJobs(
        tables.F, tables.I, steps, np.zeros(rows), key, np.zeros(rows, dtype=np.int64), np.full(rows, -1, dtype=np.int64),
        np.ascontiguousarray(speed), np.ascontiguousarray(across), np.ascontiguousarray(option), np.zeros(rows, dtype=np.int64),
    )  # fmt: skip
    packs = policy.packs and model is not None
    rules = GavelRules(low, high, policy.leaves_idle, packs, policy.aware, policy.is_artifact, model is not None and model.across)
    order = np.array([types.index(names[j]) for j in policy.fixed_order(names) if names[j] in types], dtype=np.int64)
    extras = policy.extras(types, tables.ids, users, queues, state.facts.prices)
    return GavelSetup(policy, types, rules, jobs, pairs, _devices(tables, code), tables.F[Job.WEIGHT].copy(), extras, order)


def _checked(simulation: Simulation) -> GavelPolicy:
    """The policy, if the run's options go together."""
    policy = simulation.engine.policy
    if not isinstance(policy, GavelPolicy):
        raise TypeError(f"policy '{policy.name}' gives no shares")  # the scope asks for a policy of the family
    unknown = {
        "checkpoints of ideal shares": simulation.checkpoints != Checkpoints(),
        "rounds of ideal shares": simulation.state.regime.round != REGIME.round,
    }
    for what, asked in unknown.items():
        if policy.ideal and asked:
            raise RefusedError(f"regime 'gavel' knows no {what}", where="--regime", fix="leave that out, or ideal")
    return policy


def _options(tables: Tables) -> Ints:
    """For every job and device code the row of its option with the gang it asks for; -1: none."""
    I, table = tables.I, tables.options
    owner = np.repeat(np.arange(I.shape[1]), I[Job.OPTION_COUNT])
    row = (
        np.arange(len(owner))
        - np.repeat(np.cumsum(I[Job.OPTION_COUNT]) - I[Job.OPTION_COUNT], I[Job.OPTION_COUNT])
        + I[Job.OPTION_FIRST][owner]
    )
    found = np.full((I.shape[1], len(tables.cluster.types)), -1, dtype=np.int64)
    fits = table.I[Option.GPUS][row] == I[Job.GPUS][owner]
    found[owner[fits][::-1], table.I[Option.TYPE][row[fits]][::-1]] = row[fits][::-1]
    return found


def _pairs(policy: GavelPolicy, model: ThroughputModel, place: Ints, code: Ints, seed: int) -> GavelPairs:
    """Speeds of pairs as believed and as they are; 0 where unknown and estimates are wanted."""
    truth = np.nan_to_num(model.paired)[:, :, code]
    believed = truth
    if isinstance(policy, PackingPolicy):
        if policy.estimates:
            believed = np.nan_to_num(policy.believed(model, seed))[:, :, code]
        else:
            model.refuse_unknown_pairs(place)
    return GavelPairs(np.array(believed), np.ascontiguousarray(truth), np.ascontiguousarray(np.nan_to_num(model.paired_across)[:, :, code]))


def _devices(tables: Tables, code: Ints) -> GavelDevices:
    """Devices type by type, in the cluster's order within a type."""
    kind = tables.NI[Node.TYPE][tables.D[Device.NODE]]
    name = np.concatenate([np.flatnonzero(kind == j) for j in code]).astype(np.int64)
    capacity = np.array([(kind == j).sum() for j in code], dtype=np.int64)
    types = len(code)
    return GavelDevices(
        capacity, np.concatenate(([0], np.cumsum(capacity)[:-1])).astype(np.int64), tables.D[Device.NODE][name], name, np.zeros(types),
        np.zeros(types), np.zeros(types), np.zeros(types, dtype=np.int64), np.zeros(len(name), dtype=np.int64),
    )  # fmt: skip


# What a run in Gavel's rounds has become so far.

_ORDERS = 4096  # random orders of types drawn at a time


class GavelRunState:
    """Clock, accounts and draws of one run: all that a checkpoint keeps."""

    def __init__(self, simulation: Simulation, setup: GavelSetup) -> None:
        self.simulation = simulation
        self.setup = setup
        self.memory: Any = None
        self.calls = 0
        self.late: tuple[str, ...] = ()
        self.clock = np.zeros(len(RoundTime))
        self.count = np.zeros(len(RoundCount), dtype=np.int64)
        policy, regime = setup.policy, simulation.state.regime
        self.clock[RoundTime.LENGTH], self.clock[RoundTime.SPACING], self.clock[RoundTime.UNTIL] = (
            regime.round,
            policy.least_spacing,
            simulation.until,
        )
        self.count[RoundCount.LEFT] = setup.rules.high - setup.rules.low
        largest = int(setup.jobs.I[Job.GPUS].max(initial=1))
        self.tasks = new_tasks(4096 if setup.rules.packs else 256, len(setup.types), largest)
        self.draws = Random(simulation.state.seed + 5)  # the artifact's offset for this stream
        self.orders = self.draw_orders()

    def draw_orders(self) -> Ints:
        """Orders in which types are filled: one for all rounds, or a random one for each."""
        if self.setup.policy.aware:
            return self.setup.order[None, :]
        drawn = []
        for _ in range(_ORDERS):
            order = self.setup.order.tolist()
            self.draws.shuffle(order)
            drawn.append(order)
        return np.array(drawn, dtype=np.int64)


# A run in Gavel's rounds as a checkpoint: clock, accounts, jobs, log and what the policy remembers.

_JOBS = ("F", "I", "done", "failures", "seen")
_DEVICES = ("total", "held", "paid")


def save_rounds(rounds: GavelRunState, path: Path) -> None:
    """Write all that the run has become."""
    setup, n, log = rounds.setup, int(rounds.count[RoundCount.TASKS]), rounds.simulation.state.log
    count = rounds.count.copy()
    if count[RoundCount.STEP] == RoundStep.CLOSE:  # stopped between two rounds: the one that ran has been closed
        count[RoundCount.STEP] = RoundStep.ADMIT
    arrays: dict[str, Any] = {"clock": rounds.clock, "count": count, "orders": rounds.orders, "believed": setup.pairs.believed}
    arrays |= {f"task.{name}": value[:n] for name, value in rounds.tasks._asdict().items()}
    arrays |= {f"job.{name}": getattr(setup.jobs, name) for name in _JOBS}
    arrays |= {f"device.{name}": getattr(setup.devices, name) for name in _DEVICES}
    arrays |= {"log.LN": log.LN, "log.LI": log.LI[:, : log.LN[0]], "log.LF": log.LF[:, : log.LN[0]], "log.LD": log.LD[: log.LN[1]]}
    notices = [[notice.time, notice.decision, notice.what] for notice in rounds.simulation.engine.notices]
    head = {"memory": encode(rounds.memory), "calls": rounds.calls, "late": list(rounds.late), "notices": notices}
    write_checkpoint(path, fits(rounds), head | {"draws": rounds.draws.getstate()}, arrays)


def resume_rounds(rounds: GavelRunState, path: Path) -> None:
    """Make the run what it was when the checkpoint was written."""
    head, arrays = read_checkpoint(path, fits(rounds))
    setup, simulation = rounds.setup, rounds.simulation
    until = rounds.clock[RoundTime.UNTIL]
    rounds.clock[:], rounds.count[:] = arrays["clock"], arrays["count"]
    rounds.clock[RoundTime.UNTIL] = until
    rounds.orders = arrays["orders"]
    setup.pairs.believed[:] = arrays["believed"]
    tasks = len(arrays["task.first"])
    while len(rounds.tasks.first) < tasks:
        rounds.tasks = more_room(rounds.tasks)
    for name, column in rounds.tasks._asdict().items():
        column[:tasks] = arrays[f"task.{name}"]
    for part, names, target in (("job", _JOBS, setup.jobs), ("device", _DEVICES, setup.devices)):
        for name in names:
            getattr(target, name)[:] = arrays[f"{part}.{name}"]
    _restore_log(simulation.state.log, arrays)
    rounds.memory, rounds.calls, rounds.late = decode(head["memory"]), head["calls"], tuple(head["late"])
    simulation.engine.decisions = rounds.calls
    simulation.engine.notices[:] = [Incident(*notice) for notice in head["notices"]]
    version, words, gauss = head["draws"]
    rounds.draws = Random()
    rounds.draws.setstate((version, tuple(words), gauss))


def fits(rounds: GavelRunState) -> dict[str, Any]:
    """What must be the same for a run to be gone on with; the time at which it stops may differ."""
    setup, state = rounds.setup, rounds.simulation.state
    policy = setup.policy
    speeds = hashlib.blake2b(digest_size=8)
    for part in (
        setup.jobs.speed,
        setup.jobs.speed_across,
        setup.jobs.steps,
        setup.pairs.truth,
        setup.jobs.F[Job.ARRIVAL],
        setup.devices.node,
    ):
        speeds.update(np.ascontiguousarray(part).tobytes())
    return {
        "policy": policy.name,
        "parameters": {item.name: str(getattr(policy, item.name)) for item in parameters(type(policy))},
        "devices": dict(zip(setup.types, setup.devices.capacity.tolist())),
        "round": float(rounds.clock[RoundTime.LENGTH]),
        "seed": state.seed,
        "tracked jobs": [setup.rules.low, setup.rules.high],
        "speeds across nodes": bool(setup.rules.across),
        "jobs and speeds": speeds.hexdigest(),
    }


def _restore_log(log: Log, arrays: dict[str, Any]) -> None:
    log.LN[:] = 0
    log.reserve(int(arrays["log.LN"][0]) + 1, int(arrays["log.LN"][1]) + 1)
    log.LN[:] = arrays["log.LN"]
    log.LI[:, : log.LN[0]], log.LF[:, : log.LN[0]] = arrays["log.LI"], arrays["log.LF"]
    log.LD[: log.LN[1]] = arrays["log.LD"]
