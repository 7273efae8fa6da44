"""From what a policy sees to what Gavel asks: jobs with their speeds on every device type, and those that run on CPUs alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Option
from gantline.core.errors import UsageError
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignments, Plan
from gantline.core.snapshot import Jobs, Snapshot
from gantline.models.sharing.throughput_model import ThroughputModel
from gantline.systems.gavel.policies.instance import Entity, Instance


@dataclass(frozen=True, slots=True)
class Question:
    """An instance, and how its answer is said to the engine."""

    instance: Instance  # jobs in the order of the snapshot, device types by name
    code: Ints  # [k] the cluster's code of each type
    option: Ints  # [m, k] which of its options a job takes on a type; -1: it cannot run there
    key: Ints | None = None  # [m] the job's row in the table of throughputs


def ask(
    snapshot: Snapshot,
    *,
    together: Floats | None = None,
    price: list[float] | None = None,
    entities: tuple[Entity, ...] = (),
    entity: Ints | None = None,
) -> Question:
    """The question at this instant; ``together`` are the speeds of pairs [key, key, code] as the policy believes them."""
    jobs, model = snapshot.jobs, snapshot.performance
    names = snapshot.cluster.types
    code = np.array(sorted(range(len(names)), key=lambda j: names[j]), dtype=np.int64)
    scale, option, rate = _variants(snapshot)
    unit, key = np.ones(len(jobs)), None
    if isinstance(model, ThroughputModel):
        rows = model.rows(jobs.ids)
        unit, key = model.unit[rows], model.key[rows]
    speed = rate[:, code] * unit[:, None]
    deadline = jobs.deadline - snapshot.now
    instance = Instance.of(
        types=[names[j] for j in code],
        capacity=snapshot.cluster.capacity[code],
        jobs=jobs.ids,
        throughput=speed,
        scale=scale,
        weight=jobs.weight,
        pairs=None if together is None or key is None else pairs_of(key, scale, together[:, :, code], speed),
        elapsed=np.maximum(snapshot.now - jobs.arrival, 0.0),
        steps=jobs.remaining * unit,
        price=price,
        deadline=np.where(np.isnan(deadline), np.inf, deadline),
        entities=entities,
        entity=entity,
    )
    return Question(instance, code, option[:, code], key)


def pairs_of(key: Ints, scale: Ints, together: Floats, alone: Floats) -> tuple[Ints, Floats]:
    """All pairs of jobs with gangs of equal size, and how fast both are; 0 where one of the two cannot run alone."""
    one, two = np.triu_indices(len(key), 1)
    equal = scale[one] == scale[two]
    one, two = one[equal], two[equal]
    speeds = np.stack((together[key[one], key[two]], together[key[two], key[one]]), axis=1)
    possible = (np.nan_to_num(speeds) > 0).all(axis=1) & (alone[one] > 0) & (alone[two] > 0)
    return np.stack((one, two), axis=1), np.where(possible[:, None, :], speeds, 0.0)


def _variants(snapshot: Snapshot) -> tuple[Ints, Ints, Floats]:
    """Gang sizes, and for every job and device code the option of that size with its rate (-1 and 0: none)."""
    jobs, table = snapshot.jobs, snapshot.options
    count = jobs.option_count
    owner = np.repeat(np.arange(len(jobs)), count)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    row = jobs.option_first[owner] + place
    gpus = table.I[Option.GPUS][row]
    scale = np.array(jobs.gpus)
    for job in np.flatnonzero(~np.isin(np.arange(len(jobs)), owner[gpus == scale[owner]]) | (scale == 0)):
        own = gpus[owner == job]
        if not (own > 0).any():
            raise UsageError(
                "has no way to run on devices", where=f"job '{jobs.ids[job]}'", fix="Gavel shares devices: give it an option with GPUs"
            )
        scale[job] = own[own > 0][0]
    fits = np.flatnonzero(gpus == scale[owner])[::-1]  # backwards, so that the first of several stays
    option = np.full((len(jobs), len(snapshot.cluster.types)), -1, dtype=np.int64)
    rate = np.zeros(option.shape)
    kind = table.I[Option.TYPE][row]
    option[owner[fits], kind[fits]] = place[fits]
    rate[owner[fits], kind[fits]] = table.F[Option.RATE][row[fits]]
    return scale, option, rate


# Jobs that run on CPUs alone, beside those that Gavel divides devices among.


def on_devices(snapshot: Snapshot) -> Bools:
    """Which jobs have a way to run on devices."""
    jobs, gpus = snapshot.jobs, snapshot.options.I[Option.GPUS]
    if gpus.all():
        return np.ones(len(jobs), dtype=bool)
    return np.array([gpus[first : first + count].any() for first, count in zip(jobs.option_first, jobs.option_count)], dtype=bool)


def decide_beside(snapshot: Snapshot, shared: Bools, decide: Callable[[Snapshot], Plan]) -> Plan:
    """Decide about the jobs that share devices as if they were alone; the others take nothing from them and get their first option."""
    jobs = snapshot.jobs
    plan = decide(replace(snapshot, jobs=Jobs(snapshot.lent, jobs.rows[shared], snapshot.now)))
    given, alone = plan.assignments, np.flatnonzero(~shared)
    if given is None:
        return plan
    columns = {}
    for name in ("group", "mode", "share"):
        if given.has(name):
            columns[name] = np.concatenate((given.column(name), np.full(len(alone), ASSIGNMENT_DEFAULTS[name])))
    columns["option"] = np.concatenate((given.column("option"), np.zeros(len(alone), dtype=np.int64)))
    places = np.concatenate((np.flatnonzero(shared)[given.job], alone))
    return replace(plan, assignments=Assignments(job=places, **columns))
