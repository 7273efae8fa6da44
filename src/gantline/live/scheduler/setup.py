"""Options of a simulation that a service does not have, each with the reason that a refusal gives."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from gantline.core import memory as memories
from gantline.core.cluster import Cluster
from gantline.core.cluster_now import ClusterNow
from gantline.core.columns import Job
from gantline.core.errors import GantlineError, RefusedError
from gantline.core.job_json import KnownRows
from gantline.core.phases import Phase
from gantline.core.queues import Queue, parse_queues, queues_as_text
from gantline.core.snapshot import Jobs, Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.engine import Engine
from gantline.engine.executor import Can, Executor
from gantline.engine.gang import set_due
from gantline.engine.lists import RowCount
from gantline.engine.plan_check import check_plan
from gantline.engine.policy_failures import Incident
from gantline.engine.state import State
from gantline.live.jobs.amounts import rule_of
from gantline.live.jobs.launch import Launch, slots_only
from gantline.live.scheduler.checkpoint_json import encode_reality, encode_ways, make_room, restore_reality, restore_ways
from gantline.live.wall_time import Clock, Live
from gantline.models.profiles.profiled_model import ProfiledModel
from gantline.traces.files.policies import load_policy
from gantline.traces.files.speeds import read_bundle

#: option -> why a service does not have it
ONLY_SIMULATED = {
    "estimates": "a live service estimates work from what jobs declare and report",
    "end_by": "ends jobs by the loss curves of a trace; a service has the same rule for the losses that jobs report",
    "latency": "a live decision takes the time that it takes",
    "executor": "orders are carried out by processes; gantline up --executor names what starts them",
    "track": "a measurement over a finished trace",
    "until": "a service runs until it is stopped",
    "node_events": "nodes change when they change",
    "reserve": "reserved while it runs, by gantline reserve",
    "throughputs": "speeds of a trace's job types",
    "performance": "how fast jobs run is measured while they do",
    "scaling": "what jobs show is what is known",
    "across_nodes": "belongs to throughputs",
    "budget": "the loop goes on while a live policy thinks",
    "checkpoint": "the store keeps the state",
    "checkpoint_every": "the store keeps the state",
    "resume": "the store keeps the state",
    "warmup": "a measurement over a finished trace",
    "carbon": "series of carbon intensity are read in simulations",
    "electricity": "counts the energy of a finished run",
    "power": "counts the energy of a finished run",
    "series_start": "belongs to carbon and electricity",
    "device_speeds": "tables of speeds are read in simulations",
    "locality": "belongs to device_speeds",
    "profiles": "a folder of training profiles; a live scheduler takes a bundle of measured ones",
}


@contextmanager
def without_simulated_options() -> Iterator[None]:
    """A refusal that offers an option which only a simulation has says so."""
    try:
        yield
    except GantlineError as error:
        for option in re.findall(r"--([a-z-]+)", error.fix):
            if why := ONLY_SIMULATED.get(option.replace("-", "_")):
                error.where, error.fix = "", f"a service has no --{option}: {why}"
        raise


# What a live loop is made of, and how it is made: from nothing, or from a checkpoint.
#
# A checkpoint is the snapshot of all jobs that have not ended, with what a snapshot does not show: which are held,
# which incarnations may exist and how the loop was set up. A loop made from it goes on as the other would have.

VERSION = 1
Saved: TypeAlias = Mapping[str, Any]  # a checkpoint, as plain JSON
ABILITIES = tuple(sorted(ability.value for ability in Can))


@dataclass(frozen=True)
class Setup:
    """How a live scheduler decides. Everything is a name or a number, so that it can be written down."""

    policy: str = "fifo"
    settings: Mapping[str, Any] = field(default_factory=dict)
    regime: str = "default"
    round: float = 0.0
    quantum: float = 60.0
    placement: str = "first-free"
    admission: str = "accept-all"
    costs: str = ""
    min_run: float = 0.0
    victims: str = "order"  # which jobs are stopped for a job that ranks higher, see `Facts`
    grace: float = 0.0  # seconds for which one that starts, or can save and has not yet, is not stopped for others
    turn: float = 0.0  # seconds between two instants at which an order that moves by itself may stop jobs
    prices: str = ""
    seed: int = 0
    budget: float = 0.0  # seconds that a decision may take; 0: no limit
    patience: float = 30.0  # seconds before an order is repeated
    absent: tuple[str, ...] = ()  # nodes that the runner has lost, or that were not there when a service started
    drained: tuple[str, ...] = ()  # nodes on which the runner lets nothing new start
    abilities: tuple[str, ...] = ABILITIES  # what the runner can do to gangs that run, by the values of `Can`
    collocates: bool = True  # whether the runner puts several gangs on one device
    queues: str = ""  # as `parse_queues` reads them: what there is at the beginning
    unknown_queues: str = "create"  # what becomes of a job that names a queue which does not exist: refuse, or create the queue
    end_by: str = "never"  # when the losses that jobs report end them, where a job does not say so itself
    profiles: str = ""  # a file with a bundle of profiles: what starts cost, and how fast jobs are that share devices

    def spec(self) -> RunSpec:
        """The options of a run that it has: the same that a simulation would take."""
        names = ("placement", "admission", "regime", "costs", "min_run", "grace", "turn", "victims", "prices", "seed")
        return RunSpec(round=self.round or None, **{name: getattr(self, name) for name in names})

    def rules(self, cluster: Cluster) -> RunRules:
        """What these options mean on this cluster."""
        rule_of(self.end_by)
        found = RunRules.of(self.spec(), cluster)
        regime, facts = replace(found.regime, quantum=self.quantum), replace(found.facts, collocates=self.collocates)
        return replace(found, regime=regime, facts=facts)

    def able(self, launch: Launch, cluster: Cluster) -> frozenset[Can]:
        """What need not stop such a job: what both the job and the runner can do."""
        return launch.can(slots_only(cluster)) & {Can(name) for name in self.abilities}

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "settings": memories.plain(dict(self.settings))}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Setup:
        fields = {
            **value,
            "settings": memories.restore(value.get("settings", {})),
            "queues": _queues_of(value.get("queues", "")),
            **{name: tuple(value[name]) for name in ("absent", "drained", "abilities") if name in value},
        }
        return Setup(**fields)


def make_loop(setup: Setup, saved: Mapping[str, Any] | None, cluster: Cluster, executor: Executor | None, clock: Clock) -> Live:
    """A loop with an empty machine, or as a checkpoint says."""
    with without_simulated_options():
        return _make_loop(setup, saved, cluster, executor, clock)


def _make_loop(setup: Setup, saved: Mapping[str, Any] | None, cluster: Cluster, executor: Executor | None, clock: Clock) -> Live:
    rules = setup.rules(cluster)
    if saved is None:
        tables, now, instant = Tables.empty(cluster), 0.0, None
        tables.queue_tree = parse_queues(setup.queues)
    else:
        instant = decode_snapshot(saved["snapshot"])
        tables, now = tables_behind(instant), instant.now
        _remember(tables, saved)
        make_room(tables, saved)
    if setup.profiles:
        tables.performance = ProfiledModel(read_bundle(setup.profiles))
    state = rules.state(tables, now)
    if saved is not None and instant is not None:
        _restore(state, saved, instant)
    engine = rules.engine(state, rules.fit(load_policy(setup.policy, setup.settings)))
    if state.memory is not None:
        _forget_unreadable(engine)
    loop = Live(engine, rules.admission, executor=executor, clock=clock)
    loop.reconciler.orders.patience = setup.patience
    if saved is not None:
        _restore_loop(loop, saved)
    return loop


def _forget_unreadable(engine: Engine) -> None:
    """Restart a policy that cannot decide with its saved memory but can without it: else it would lose every turn."""
    state = engine.state
    snapshot = state.snapshot()

    def answers(instant: Snapshot) -> bool:
        try:
            check_plan(instant, engine.policy.decide(instant))
        except KeyboardInterrupt:
            raise
        except BaseException:  # its mistakes are reported when it decides in earnest
            return False
        return True

    if not answers(snapshot) and answers(replace(snapshot, memory=None)):
        state.memory = None
        what = "the policy cannot read what it remembered (another version of it wrote that?): it begins anew"
        engine.incidents.append(Incident(state.now, state.decision, what))


def _remember(tables: Tables, saved: Mapping[str, Any]) -> None:
    """Rows are never used again, because a policy's memory may name them; rows of ended jobs keep their names while they are there."""
    while len(tables.ids) < saved["rows"]:
        tables.add_row("")
    for row, (name, phase) in saved["leaving"].items():
        tables.ids[int(row)], tables.I[Job.PHASE, int(row)] = name, phase


def _restore(state: State, saved: Mapping[str, Any], instant: Snapshot) -> None:
    t, rows = state.tables, instant.jobs.rows
    state.decision, state.memory, state.learned = instant.decision, instant.memory, instant.learned
    state.gone = instant.left
    held = {t.ids.index(name): Phase.HELD for name in saved["held"]}
    t.F[Job.WORK] = math.inf  # not known
    for row in held:
        t.I[Job.PHASE, row] = int(Phase.HELD)
    state.withheld = {**held}
    state.reserve(instant.reservations, rows)
    inside = np.array([row for row in rows.tolist() if t.I[Job.PHASE, row] != Phase.HELD], dtype=np.int64)
    state.activate(inside)
    state.lists.number[RowCount.NEXT] = state.lists.number[RowCount.HELD] = len(t.ids)
    state.rebuild()
    for row in state.running_rows.tolist():
        set_due(t.F, row)


def _restore_loop(loop: Live, saved: Mapping[str, Any]) -> None:
    loop.agenda.restore(saved["agenda"])
    engine = loop.engine
    restore_ways(engine.grants.options, saved)
    loop.state.resized, loop.state.to_fit = set(saved.get("resized", ())), set(saved.get("to_fit", ()))
    engine.preemption_grace.rows = set(np.flatnonzero(loop.state.tables.I[Job.LOCKED]).tolist())  # nothing else locks them here
    loop.state.saves = {int(row): (epoch, first) for row, (epoch, first) in saved.get("saves", {}).items()}
    restore_reality(loop.reconciler, saved)


def checkpoint_of(loop: Live, setup: Setup, born: float, known: KnownRows | None = None) -> dict[str, Any]:
    """Everything that a loop needs to go on from here; only between two steps, when all submitted jobs have arrived.

    `known` is what earlier ones had, so that only what has changed since is written anew.
    """
    state, t = loop.state, loop.state.tables
    if not state.all_arrived:
        raise RefusedError("a submitted job has not arrived yet", where="checkpoint")
    phases = t.I[Job.PHASE, : len(t.ids)]
    kept_out = np.flatnonzero(phases == Phase.HELD).tolist()
    held = [row for row in kept_out if state.withheld.get(row) is Phase.HELD]
    rows = np.array(sorted({*state.rows.tolist(), *kept_out}), dtype=np.int64)
    place = {row: k for k, row in enumerate(rows.tolist())}
    promised = tuple(
        one if one.job < 0 else type(one)(**{**asdict(one), "job": place[one.job]})
        for one in state.reservations
        if one.end > state.now and (one.job < 0 or one.job in place)
    )
    jobs, regime = Jobs(t.lent, rows, state.now, state.learned), state.regime
    instant = Snapshot(
        state.now,
        state.decision,
        state.seed,
        jobs,
        ClusterNow(t.lent, rows),
        state.memory,
        regime.round,
        promised,
        regime.name,
        state.learned,
        state.facts,
        t.lent,
        state.left,
    )
    if known is not None:
        known.look(t)
    shown = encode_snapshot(instant, known)
    for job in shown["jobs"]:
        if job.get("phase") == "held":
            del job["phase"]
    leaving = {str(row): [t.ids[row], int(t.I[Job.PHASE, row])] for row in loop.reconciler.live if row not in place}
    return {
        "version": VERSION,
        "agenda": loop.agenda.to_json(),
        "born": born,
        "setup": setup.to_json(),
        "snapshot": shown,
        "rows": len(t.ids),
        "leaving": leaving,
        "held": [t.ids[row] for row in held],
        "resized": sorted(row for row in state.resized if row in place),
        "to_fit": sorted(row for row in state.to_fit if row in place),
        "saves": {str(row): list(note) for row, note in state.saves.items() if row in place},
        "ways": encode_ways(loop.engine.grants.options, place),
        **encode_reality(loop.reconciler, place),
    }


def _queues_of(value: Any) -> str:
    """Queues as a setup has them; older checkpoints list them field by field."""
    return value if isinstance(value, str) else queues_as_text({one["name"]: Queue(**one) for one in value}, "queues")
