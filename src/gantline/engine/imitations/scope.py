"""What an imitated simulator reads of a run: its policies, their parameters, options. Whatever else is set is refused, not ignored.

An imitation runs its own program in place of a policy's `decide`, so a class derived from a registered policy would not be called: it is
refused too. Each package has a `scope.py` with its `SCOPE`; an option that is new to runs is refused by all of them until one names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gantline.core.columns import DEVICE_MEMORY, HOST_RESOURCE_NAMES, Option
from gantline.core.errors import RefusedError, listed
from gantline.core.policy import Policy, changed
from gantline.core.tables import Tables
from gantline.policies.registry import find_policy

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
