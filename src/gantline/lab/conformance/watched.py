"""Wraps the policy under test: answers as it does, and checks every answer against the rules."""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from gantline.core import memory as memories
from gantline.core.errors import GantlineError
from gantline.core.insiders import tables_behind
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_plan, encode_snapshot
from gantline.core.tables import Tables
from gantline.engine.plan_check import check_plan
from gantline.lab.conformance.fence import fence
from gantline.simulator.from_here import carry_out_on


@dataclass(frozen=True)
class Watched(Policy):
    """Decides as `inner`, which was `pristine` once; `plans` gets every answer and `broken` the first breach of each rule, where it is
    watched closely: at every decision, at every n-th, or (0) at none."""

    inner: Policy = field(default_factory=Policy)
    pristine: Policy = field(default_factory=Policy)
    closely: int = 1
    broken: dict[str, str] = field(default_factory=dict)
    plans: list[str] = field(default_factory=list)

    @staticmethod
    def over(policy: Policy, closely: int = 1) -> Watched:
        """Watch a copy of the policy, and keep another one as it was."""
        return Watched(copy.deepcopy(policy), copy.deepcopy(policy), closely)

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self.inner.needs)

    @property
    def observed(self) -> Policy:
        return self.inner

    def decide(self, snapshot: Snapshot) -> Plan:
        if not self.closely or snapshot.decision % self.closely:
            plan = self.inner.decide(snapshot)
            self.plans.append(self._encoded(snapshot, plan) or "")
            return plan
        before = fingerprint(tables_behind(snapshot))
        remembered = _as_text(snapshot.memory)
        with fence() as crossed:
            plan = self.inner.decide(snapshot)
        if crossed:
            self._breach("purity", snapshot, crossed[0])
        if fingerprint(tables_behind(snapshot)) != before or _as_text(snapshot.memory) != remembered:
            self._breach("input", snapshot, "the snapshot or its memory was changed")
        answer = self._encoded(snapshot, plan)
        self.plans.append(answer or "")
        if answer is not None:
            restored = decode_snapshot(json.loads(json.dumps(encode_snapshot(snapshot))), snapshot.performance)
            self._decide_again(snapshot, restored, answer)
            self._carry_out(restored, plan)
        return plan

    def _encoded(self, snapshot: Snapshot, plan: Plan) -> str | None:
        """The plan as text; None if it cannot be carried out (the engine then reports it)."""
        if not isinstance(plan, Plan):
            return None
        try:
            memories.check(plan.memory)
            text = memories.encode(plan.memory)
        except GantlineError as error:
            self._breach("memory", snapshot, str(error))
            return None
        if memories.encode(memories.decode(text)) != text:
            self._breach("memory", snapshot, "the memory does not survive JSON")
        with suppress(GantlineError):
            check_plan(snapshot, plan)
            return json.dumps(encode_plan(plan), sort_keys=True)
        return None

    def _decide_again(self, snapshot: Snapshot, restored: Snapshot, answer: str) -> None:
        """A policy rebuilt from its parameters, given the stored memory and snapshot, returns the same answer."""
        again = self._rebuilt(restored)
        if again == answer:
            return
        stored = replace(snapshot, memory=memories.decode(memories.encode(snapshot.memory)))
        faithful = all(self._rebuilt(stored) == answer for _ in range(2))  # then the file is the cause
        which = "from the snapshot as a file it" if faithful else "a rebuilt policy"
        self._breach("memory only", snapshot, f"{which} decides otherwise: {again[:80]}... instead of {answer[:80]}...")

    def _rebuilt(self, snapshot: Snapshot) -> str:
        return json.dumps(encode_plan(copy.deepcopy(self.pristine).decide(snapshot)), sort_keys=True)

    def _carry_out(self, snapshot: Snapshot, plan: Plan) -> None:
        """Assignments are final: a job that is assigned something must be able to get it. Uses the snapshot up."""
        if plan.assignments is None or is_in_flight(snapshot):
            return
        assigned = {int(job) for job in plan.assignments.job}
        try:
            outcomes = carry_out_on(snapshot, plan, "first-free")  # a stricter rule may make gangs wait that fit by number
        except GantlineError as error:
            self._breach("feasible", snapshot, str(error))
            return
        for place, outcome in enumerate(outcomes):
            if place in assigned and outcome.act in ("waits", "is stopped"):
                self._breach("feasible", snapshot, f"job '{outcome.job}' is assigned what it cannot get: {outcome.why}")

    def _breach(self, rule: str, snapshot: Snapshot, message: str) -> None:
        self.broken.setdefault(rule, f"decision {snapshot.decision} at {snapshot.now:g} s: {message}")


def fingerprint(tables: Tables) -> str:
    """A hash over everything that a snapshot exposes."""
    digest = hashlib.blake2b(digest_size=16)
    for matrix in (tables.F, tables.I, tables.options.F, tables.options.I, tables.NF, tables.NI, tables.D, *tables.metrics.values()):
        digest.update(np.ascontiguousarray(matrix).tobytes())
    digest.update("\0".join([*tables.ids, *tables.users, *tables.queues, *tables.apps, *tables.models]).encode())
    return digest.hexdigest()


def is_in_flight(snapshot: Snapshot) -> bool:
    """Whether gangs are just starting or stopping: the plan then cannot grant what they hold."""
    jobs = snapshot.jobs
    return bool(((jobs.running & (jobs.phase != Phase.RUNNING)) | jobs.locked).any())


def _as_text(memory: object) -> str:
    try:
        return memories.encode(memory)
    except GantlineError:
        return ""
