"""Regimes that are run by a loop of their own: those with an imitation in their system's manifest, and what it reads of a run.

An imitation gets the run as it was set up and the trace, fills the run's tables and log, and may add to the summary. It is loaded when it
is asked for, because each brings kernels of its own. It runs its own program in place of a policy's `decide`, so a class derived from a
registered policy would not be called. That is refused, as is whatever its scope does not name: an option that is new to runs is refused by
all of them until one names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gantline.core.columns import DEVICE_MEMORY, HOST_RESOURCE_NAMES, Option
from gantline.core.errors import GantlineError, RefusedError, UsageError, listed
from gantline.core.policy import Policy, changed
from gantline.core.tables import Tables
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.regime import REGIMES
from gantline.models.goodput.measured import Profiles
from gantline.policies.registry import find_policy
from gantline.registry import KINDS, Register, has_foreign
from gantline.traces.files.profiles import example_profiles
from gantline.traces.trace import Trace

# --- what an imitation reads --------------------------------------------------------------------------------------------
_NOTHING = np.zeros(0)

#: read whatever the regime: it names the imitation, seeds the generators of traces, or is reckoned from the result
ALWAYS = frozenset({"regime", "seed", "prices", "warmup"})


@dataclass(frozen=True)
class Scope:
    """One original: the name of its simulator, what it reads, and the parameters of each policy that it has."""

    simulator: str
    options: frozenset[str]
    """Options of the run (names of `RunSpec`), beside those that are always read."""
    policies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Policy -> the parameters that are read."""
    resources: tuple[str, ...] = ()
    """What jobs may ask for beside GPUs."""

    def check(self, regime: str, policy: Policy, options: Mapping[str, str]) -> None:
        """Refuse what it does not read; `options` are those that were set: name -> flag."""
        where = f"--regime {regime}"
        self.check_class(policy, where)
        read = self.reads(policy)
        for one in changed(policy):
            if one not in read:
                has = f"it reads {', '.join(read)}" if read else "it reads no parameter of this policy"
                fix = f"leave {one} out ({has}), or use another --regime"
                raise RefusedError(f"{self.simulator} does not read '{one}' of {policy.name}", where=where, fix=fix)
        for name, flag in options.items():
            if name not in self.options | ALWAYS:
                raise RefusedError(
                    f"{self.simulator} has nothing like {flag}", where=where, fix=f"leave {flag} out, or use another --regime"
                )

    def check_class(self, policy: Policy, where: str) -> None:
        """Refuse policies that the original does not have, and classes that only derive from one it has."""
        name = policy.name or type(policy).__name__
        if policy.name not in self.policies:
            known = sorted(self.policies)
            raise RefusedError(f"{self.simulator} has no policy '{name}'", where=where, fix=f"it has {listed(known)}")
        if type(policy) is not find_policy(policy.name):
            what = f"class '{type(policy).__name__}' would not be called: {self.simulator} runs a program of its own for '{policy.name}'"
            raise RefusedError(what, where=where, fix=f"use --policy {policy.name}, or another --regime")

    def reads(self, policy: Policy) -> tuple[str, ...]:
        """The parameters of this policy that are read."""
        return self.policies[policy.name]

    def check_jobs(self, regime: str, tables: Tables) -> None:
        """Refuse jobs that ask for CPUs, memory, storage or device memory which the original would not count."""
        for k, name in enumerate(HOST_RESOURCE_NAMES):
            if (tables.options.F[Option.CPUS + k] > 0).any():
                self._check_counted(regime, name)
        if any(tables.cluster.device_memory) and (tables.metrics.get(DEVICE_MEMORY, _NOTHING) > 0).any():
            self._check_counted(regime, DEVICE_MEMORY)

    def _check_counted(self, regime: str, name: str) -> None:
        if name not in self.resources:
            fix = f"leave {name} out of the cluster or the trace, or use another --regime"
            raise RefusedError(f"jobs ask for {name}, which {self.simulator} does not count", where=f"--regime {regime}", fix=fix)


# --- profiles that jobs run by: those that were given, else the made-up ones --------------------------------------------


def profiles_of(simulation: Simulation, trace: Trace, where: str) -> Profiles:
    """The profiles of a run; a trace with networks that have no profile is refused."""
    if isinstance(simulation.profiles, Profiles):
        return simulation.profiles
    made_up = example_profiles()
    named = [trace.frame[column].to_list() for column in ("app", "model") if column in trace.frame.columns]
    for names in zip(*named) if named else [("",)] * len(trace.frame):
        if not any(name in made_up.applications for name in names):
            what = next((f" of '{name}'" for name in names if name), "")
            fix = f"give --profiles DIR, a folder per application; only {' and '.join(sorted(made_up.applications))}, made up, are built in"
            raise UsageError(f"needs measured profiles{what}", where=where, fix=fix)
    return made_up


def profiles_summary(simulation: Simulation) -> dict[str, str]:
    """What the summary says of them."""
    return {"profiles": "made up"} if simulation.profiles is None else {}


# --- imitations ---------------------------------------------------------------------------------------------------------
Imitation = Callable[[Simulation, Trace], dict[str, Any] | None]

_LOOPS = Register("imitations", {}, where="--regime")
_SCOPES = Register("scopes", {}, where="--regime")


def imitated_regimes() -> list[str]:
    """The regimes that are run by a loop of their own."""
    return _LOOPS.names()


def find_imitation(regime: str) -> Imitation | None:
    """The loop of that regime; None: the engine runs it."""
    found: Imitation | None = _load(_LOOPS, regime)
    return found


def read_in(policy: Policy) -> dict[str, tuple[str, ...]]:
    """The regimes with a loop of their own that run this policy, and the parameters that each reads."""
    found = {}
    for regime in imitated_regimes():
        scope = find_scope(regime)
        try:
            assert scope is not None
            scope.check_class(policy, "")
        except GantlineError:
            continue
        found[regime] = scope.reads(policy)
    return found


def find_scope(regime: str) -> Scope | None:
    """What the imitation of that regime reads of a run; None: the engine runs it."""
    found: Scope | None = _load(_SCOPES, regime)
    return found


def _load(register: Register, regime: str) -> Any:
    """What there is of a regime; one of ours is imitated by us or not at all."""
    known = REGIMES.find(regime)
    if known is not None and not known.system and not has_foreign():  # a general regime: no manifest need be read
        return None
    found = register.find(regime)
    if found is None:
        return None
    if known is not None and known.brought_by != found.brought_by:
        what = f"package '{found.brought_by}' brings an {KINDS['imitations']} of regime '{regime}', which '{known.brought_by}' brings"
        raise UsageError(what, where="--regime", fix="uninstall that package, or give its regime a name of its own")
    return register.load(regime)
