"""What all of Gavel's policies have in common: shares of time, computed when jobs or devices change, become turns.

A policy of this family answers `shares`: which part of its time each job (or pair) should spend on each device type.
Everything else is here: when to compute them anew, and which job has its turn (`turns`, `turn_ledger`). In rounds every round
is a turn; where decisions follow events a turn lasts `turn` seconds, and until it ends no job is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignments, Mode, Plan
from gantline.core.policy import Policy, param
from gantline.core.snapshot import Snapshot
from gantline.models.sharing.matrix_completion import EstimationError, Profiling
from gantline.models.sharing.throughput_model import ThroughputModel, measured
from gantline.policies.turns import Ledger, next_turns
from gantline.systems.gavel.policies.allocation import Allocation, remarks
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.question import Question, ask, decide_beside, on_devices

ARTIFACT_SPACING = 1920.0  # seconds: how often the artifact computes shares at most
ARTIFACT_ORDER = ("v100", "p100", "k80")  # in which it fills its types
LEAST_SHARE = 1e-6  # of the time; an ideal share below this is not worth a grant


@dataclass(frozen=True)
class GavelPolicy(Policy):
    """Base of the family."""

    paper: ClassVar[str] = "Gavel (Narayanan et al., OSDI 2020)"
    aware: ClassVar[bool] = True  # knows speeds; an agnostic policy fills the types in random order
    packs: ClassVar[bool] = False  # may let two jobs share devices
    strict: ClassVar[bool] = False  # leaves devices idle rather than give them to jobs without a share

    compat: str = field(default="", metadata=param("'gavel': the artifact's rules, slips included", one_of=("", "gavel")))
    spacing: float = field(default=-1.0, metadata={"help": "least seconds between two computations of shares (-1: 0, with compat 1920)"})
    turn: float = field(default=360.0, metadata=param("seconds of a turn, where decisions follow events", above=0.0, unit="seconds"))
    ideal: bool = field(default=False, metadata={"help": "divide time ideally instead of in turns"})

    # --- what a policy of the family says -----------------------------------------------------------------------------
    def shares(self, instance: Instance, memory: Any, seed: int) -> tuple[Allocation, Any]:
        """Shares of time, and what to remember until they are asked for again."""
        raise TypeError(f"policy '{type(self).__name__}' has no shares()")

    def extras(
        self, types: Sequence[str], jobs: Sequence[str], users: Sequence[str], queues: Sequence[str], prices: Mapping[str, float]
    ) -> dict[str, Any]:
        """Further columns of the question: what types cost (`prices` are the run's), which entity owns which job."""
        return {}

    def together(self, snapshot: Snapshot, runs: list[list[int]]) -> Floats | None:
        """Speeds of pairs [key, key, device code], if the policy packs; ``runs`` are the pairs that have run so far."""
        return None

    @property
    def estimates(self) -> bool:
        """Whether speeds of pairs are estimated until they have run."""
        return False

    # --- the artifact or not ------------------------------------------------------------------------------------------
    @property
    def is_artifact(self) -> bool:
        """Whether the artifact's slips are wanted."""
        return self.compat == "gavel"

    @property
    def leaves_idle(self) -> bool:
        """Whether devices stay idle rather than go to jobs without a share."""
        return self.strict

    @property
    def least_spacing(self) -> float:
        """Seconds between two computations of shares."""
        if self.spacing >= 0:
            return self.spacing
        return ARTIFACT_SPACING if self.is_artifact else 0.0

    def fixed_order(self, names: tuple[str, ...]) -> Ints:
        """Positions of the types in the order in which an aware policy fills them: the artifact's, else as they are listed."""
        wanted = {name: k for k, name in enumerate(ARTIFACT_ORDER)} if self.is_artifact else {}
        return np.array(sorted(range(len(names)), key=lambda j: (wanted.get(names[j], len(wanted)), j)), dtype=np.int64)

    # --- decide -------------------------------------------------------------------------------------------------------
    def decide(self, snapshot: Snapshot) -> Plan:
        shared = on_devices(snapshot)
        return self._divide(snapshot) if shared.all() else decide_beside(snapshot, shared, self._divide)

    def _divide(self, snapshot: Snapshot) -> Plan:
        """Shares of the devices, as turns, for jobs that can all run on devices."""
        if not len(snapshot.jobs) or not snapshot.cluster.capacity.any():
            return Plan.assign([], memory=snapshot.memory)
        stored = snapshot.memory or {"ledger": None, "policy": None, "capacity": None, "runs": [], "late": []}
        length = snapshot.round or self.turn
        asked = self._ask(snapshot, stored["runs"])
        instance = asked.instance
        ledger = Ledger.recall(stored["ledger"], len(instance.types)).credited(snapshot.jobs.ids, snapshot.jobs.attained)
        ledger = ledger.updated(
            snapshot.jobs.ids, instance.scale.astype(np.int64), snapshot.jobs.attained, instance.pairs is not None, length
        )
        if stored["capacity"] is None or not np.array_equal(stored["capacity"], instance.capacity):
            ledger = replace(ledger, stale=True)
        memory, late = stored["policy"], stored["late"]
        notes: tuple[str, ...] = ()
        if ledger.stale and snapshot.now - ledger.computed >= self.least_spacing:
            allocation, memory = self.shares(instance, memory, snapshot.seed)
            ledger = ledger.renewed(allocation.share, allocation.paired, snapshot.now, length)
            before, late = late, [str(job) for job in allocation.missing]
            notes = remarks(allocation.status, late, before)
        stored = {"policy": memory, "capacity": instance.capacity, "runs": stored["runs"], "late": late}
        plan = self._ideal(asked, ledger, stored) if self.ideal else self._turns(snapshot, asked, ledger, stored)
        return replace(plan, notes=notes) if notes else plan

    def _ask(self, snapshot: Snapshot, runs: list[list[int]]) -> Question:
        jobs = snapshot.jobs
        users, queues = [snapshot.users[k] for k in jobs.user], [snapshot.queues[k] for k in jobs.queue]
        extras = self.extras(sorted(snapshot.cluster.types), jobs.ids, users, queues, snapshot.prices)
        return ask(snapshot, together=self.together(snapshot, runs), **extras)

    def _turns(self, snapshot: Snapshot, asked: Question, ledger: Ledger, stored: dict[str, Any]) -> Plan:
        instance, jobs = asked.instance, snapshot.jobs
        kept = np.array(jobs.locked)
        ends = ledger.ends
        if snapshot.round <= 0 and snapshot.now < ends:
            kept |= jobs.running
        elif snapshot.round <= 0:
            ends = snapshot.now + self.turn
        speed = np.where(ledger.second[:, None] < 0, instance.throughput[ledger.first], 0.0)
        if instance.pairs is not None and len(instance.pairs):
            paired = np.flatnonzero(ledger.second >= 0)
            by_members = np.lexsort((ledger.second[paired], ledger.first[paired]))
            speed[paired[by_members]] = instance.pairs.throughput.min(axis=1)
        given = next_turns(ledger, speed, instance.scale.astype(np.int64), self._order(snapshot, asked), instance.capacity.astype(np.int64),
                           kept, strict=self.leaves_idle, wasteful=self.is_artifact)  # fmt: skip
        ledger = replace(ledger, turn=given.turn, ends=ends)
        runs = _runs(stored["runs"], asked, ledger) if self.estimates else []
        stored = {**stored, "ledger": ledger.plain(), "runs": runs}
        until = ends if snapshot.round <= 0 else np.inf if _settled(asked, ledger, given.chosen) else None
        return Plan.assign(_grants(asked, ledger, given.chosen), valid_until=until, memory=stored)

    def _order(self, snapshot: Snapshot, asked: Question) -> Ints:
        """Positions of the instance's types in the order in which they are filled."""
        place = np.argsort(asked.code)
        if self.aware:
            return np.asarray(place[self.fixed_order(snapshot.cluster.types)])
        return np.asarray(place[snapshot.rng("gavel/order").permutation(len(place))])

    def _ideal(self, asked: Question, ledger: Ledger, stored: dict[str, Any]) -> Plan:
        """Every task gets its shares of time; those of a pair are a group on every type."""
        task, type = np.nonzero(ledger.share > LEAST_SHARE)
        one, two, share = ledger.first[task], ledger.second[task], np.minimum(ledger.share[task, type], 1.0)
        usable = (asked.option[one, type] >= 0) & ((two < 0) | (asked.option[two, type] >= 0))
        one, two, share, type = one[usable], two[usable], share[usable], type[usable]
        shared = two >= 0
        table = _groups(asked, one, two, type, np.concatenate((share, share[shared])))
        until = ledger.computed + self.least_spacing if ledger.stale else np.inf
        return Plan.assign(table, valid_until=until, memory={**stored, "ledger": ledger.plain()})


def _settled(asked: Question, ledger: Ledger, chosen: Ints) -> bool:
    """Whether every job has its turn in every round until something happens: there is one type, and room for all."""
    instance = asked.instance
    one_type = np.count_nonzero(instance.capacity) == 1
    return bool(one_type and instance.pairs is None and not ledger.stale and len(chosen) == len(instance))


def _grants(asked: Question, ledger: Ledger, chosen: Ints) -> Assignments:
    """The turns as assignments, large gangs first."""
    order = chosen[np.argsort(-asked.instance.scale[ledger.first[chosen]], kind="stable")]
    return _groups(asked, ledger.first[order], ledger.second[order], ledger.turn[order])


def _groups(asked: Question, one: Ints, two: Ints, type: Ints, share: Floats | None = None) -> Assignments:
    """Assignments of tasks on types; the members of a pair are a group, the second ones stand behind all others."""
    shared = two >= 0
    job, type = np.concatenate((one, two[shared])), np.concatenate((type, type[shared]))
    columns: dict[str, Any] = {"option": asked.option[job, type]}
    if shared.any():
        group = np.where(shared, np.cumsum(shared) - 1, -1)
        columns["group"] = np.concatenate((group, group[shared]))
        columns["mode"] = np.where(columns["group"] >= 0, int(Mode.SPACE), int(Mode.EXCLUSIVE))
    if share is not None:
        columns["share"] = share
    return Assignments(job=job, **columns)


def _runs(runs: list[list[int]], asked: Question, ledger: Ledger) -> list[list[int]]:
    """Pairs that have run, as rows of the table and a device code: what they do together is known from then on."""
    on = np.flatnonzero((ledger.turn >= 0) & (ledger.second >= 0))
    if asked.key is None or not len(on):
        return runs
    known = {tuple(run) for run in runs}
    for task in on:
        a, b = sorted((int(asked.key[ledger.first[task]]), int(asked.key[ledger.second[task]])))
        known.add((a, b, int(asked.code[ledger.turn[task]])))
    return [list(run) for run in sorted(known)]


# Policies that let two jobs share devices: where they learn how fast two jobs are together.
#
# All pairs may be measured, or only some: then the rest are estimated by matrix completion against reference jobs, and what
# a pair really does is known once it has run (Gavel, OSDI 2020, section 6).


@dataclass(frozen=True)
class PackingPolicy(GavelPolicy):
    """Base of those that pack."""

    packs: ClassVar[bool] = True
    needs: ClassVar[frozenset[str]] = frozenset({"pairs"})

    profiling: float = field(
        default=1.0,
        metadata=param("part of the pairs with reference jobs that is measured for a new job", above=0.0, high=1.0, unit="a part"),
    )
    references: int = field(default=0, metadata=param("number of reference jobs (0: every job type is one)", low=0))

    @property
    def estimates(self) -> bool:
        """Whether some pairs are estimated."""
        return self.profiling < 1 or self.references > 0

    def believed(self, model: ThroughputModel, seed: int) -> Floats:
        """Speeds of pairs [key, key, type] before any has run."""
        if not self.estimates:
            return model.paired
        return model.believed(self._profiling(model), seed)

    def estimation_error(self, model: ThroughputModel, seed: int) -> EstimationError | None:
        """How far those speeds are from the measured ones; None if nothing is estimated."""
        return model.estimation_error(self._profiling(model), seed) if self.estimates else None

    def summary_of(self, model: Any, seed: int) -> dict[str, Any]:
        error = self.estimation_error(model, seed) if isinstance(model, ThroughputModel) else None
        if error is None:
            return {}
        return {
            "estimation_error": error.mean,
            "estimation_error_rms": error.root_mean_square,
            "pairs_taken_for_impossible": error.mistaken_as_impossible,
            "pairs_taken_for_possible": error.mistaken_as_possible,
        }

    def _profiling(self, model: ThroughputModel) -> Profiling:
        return Profiling(self.profiling, self.references or len(model.table.keys))

    def together(self, snapshot: Snapshot, runs: list[list[int]]) -> Floats | None:
        model = snapshot.performance
        if not isinstance(model, ThroughputModel):
            return None
        if self.estimates:
            return measured(self.believed(model, snapshot.seed), model.paired, [(a, b, j) for a, b, j in runs])
        model.refuse_unknown_pairs(model.rows(snapshot.jobs.ids))
        return model.paired
