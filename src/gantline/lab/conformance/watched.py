"""Wraps the policy under test: answers as it does, and checks every answer against the rules."""

from __future__ import annotations

import copy
import datetime
import gc
import hashlib
import json
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import numpy as np

from gantline.core import memory as memories
from gantline.core.errors import GantlineError
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_plan, encode_snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.engine.plan_check import check_plan
from gantline.simulator.roll_forward import carry_out_on


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


# A fence around a decision: detects clocks, unseeded randomness and I/O while a policy decides.
#
# Calls of built-in functions and questions to the environment are seen by a profiling hook, draws from the global generators by their
# changed state. Loading a module or
# a compiled kernel for the first time reads files too, and NumPy asks for entropy before it takes the key of `snapshot.rng`; such calls
# are allowed by where they come from.

_CLOCK = {
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "thread_time",
    "localtime", "gmtime", "sleep", "clock_gettime", "clock_gettime_ns",
}  # fmt: skip
_SYSTEM = {
    "open", "read", "write", "stat", "lstat", "listdir", "scandir", "system", "fork", "getcwd", "remove", "unlink", "mkdir", "rmdir",
    "rename", "replace", "readlink", "getloadavg",
}  # fmt: skip
_DATES, _ENTROPY, _OPENING, _TALKING = {"now", "today", "utcnow"}, {"urandom", "getrandom"}, {"open", "open_code"}, {"print", "input"}
_WATCHED = _CLOCK | _SYSTEM | _DATES | _ENTROPY | _OPENING | _TALKING
_OUTSIDE = {"_socket", "_posixsubprocess", "_sqlite3"}
_ASKING = {"__getitem__", "__iter__", "__len__", "copy"}
_ENVIRONMENT = {getattr(type(os.environ), name).__code__ for name in _ASKING}
_INNOCENT = ("importlib", "_frozen_importlib", "numba", "llvmlite", "gantline.core.machine_code", "gantline._alarm", "gantline.core.rng")


@contextmanager
def fence() -> Iterator[list[str]]:
    """Collect in the list what crossed the fence inside the block."""
    crossed: list[str] = []
    before_random, before_numpy = random.getstate(), _numpy_state()
    before_hook = sys.getprofile()

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            if called.__name__ in _WATCHED or called.__module__ in _OUTSIDE:  # few calls are; this is checked at every call in a decision
                what = forbidden(called)
                if what and not _is_innocent(frame):
                    crossed.append(f"{what} in {frame.f_code.co_name}(), line {frame.f_lineno}")
        elif event == "call" and frame.f_code.co_name in _ASKING and frame.f_code in _ENVIRONMENT and not _is_innocent(frame):
            crossed.append(f"reads the environment{_read_at(frame)}")

    collecting = gc.isenabled()
    gc.disable()  # callbacks of the collector are not the policy's doing
    sys.setprofile(watch)
    try:
        yield crossed
    finally:
        sys.setprofile(before_hook)
        if collecting:
            gc.enable()
        if random.getstate() != before_random:
            crossed.append("draws from the global generator of random")
        if _numpy_state() != before_numpy:
            crossed.append("draws from the global generator of NumPy")


def forbidden(called: object) -> str:
    """What a built-in function does to the outside world; empty: nothing."""
    module, name = getattr(called, "__module__", None), getattr(called, "__name__", "")
    owner = getattr(called, "__self__", None)
    if module == "time" and name in _CLOCK:
        return f"reads a clock: time.{name}"
    if name in _DATES and isinstance(owner, type) and issubclass(owner, datetime.date):
        return f"reads a clock: {owner.__name__}.{name}"
    if module == "posix" and name in _ENTROPY:
        return f"draws randomness that no seed controls: os.{name}"
    if (module in ("io", "_io") and name in _OPENING) or (module == "posix" and name in _SYSTEM):
        return f"does I/O: {name}"
    if module == "builtins" and name in _TALKING:
        return f"does I/O: {name}"
    if module in _OUTSIDE:
        return f"does I/O: {module.lstrip('_')}.{name}"
    return ""


def _is_innocent(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_INNOCENT):
            return True
        frame = frame.f_back
    return False


def _read_at(frame: FrameType) -> str:
    """Where in the policy the environment was read: the first frame outside of the standard library's own."""
    asking = frame.f_back
    while asking is not None and asking.f_code.co_filename in (os.__file__, "<frozen os>", "<frozen _collections_abc>"):
        asking = asking.f_back
    return f" in {asking.f_code.co_name}(), line {asking.f_lineno}" if asking is not None else ""


def _numpy_state() -> tuple[object, ...]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    inner = state["state"]
    return state["bit_generator"], inner["key"].tobytes(), inner["pos"], state["has_gauss"], state["gauss"]
