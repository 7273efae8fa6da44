"""What Gavel's simulator reads: it asks the policy itself for shares of time, so any policy of the family runs."""

from __future__ import annotations

from dataclasses import fields

from gantline.core.errors import RefusedError
from gantline.core.policy import Policy
from gantline.engine.imitations.registry import Scope
from gantline.systems.gavel.policies.policy import GavelPolicy


class GavelScope(Scope):
    """Shares come from the policy; rounds are the simulator's own, so `decide` and the length of a turn on events are not read."""

    def check_class(self, policy: Policy, where: str) -> None:
        name = policy.name or type(policy).__name__
        if not isinstance(policy, GavelPolicy):
            raise RefusedError(f"policy '{name}' gives no shares of time, which regime 'gavel' makes rounds of", where=where,
                               fix="use a policy gavel.NAME, or another --regime")  # fmt: skip
        if type(policy).decide is not GavelPolicy.decide:
            what = f"decide() of class '{type(policy).__name__}' would not be called: {self.simulator} asks for shares()"
            raise RefusedError(what, where=where, fix="write shares(), or use another --regime")

    def reads(self, policy: Policy) -> tuple[str, ...]:
        return tuple(item.name for item in fields(policy) if item.name not in _not_read(policy))


def _not_read(policy: Policy) -> tuple[str, ...]:
    """Ideal shares are computed at every arrival and finish, and divided without rounds."""
    return ("turn", "spacing") if isinstance(policy, GavelPolicy) and policy.ideal else ("turn",)


SCOPE = GavelScope(
    "Gavel's simulator",
    frozenset({"round", "until", "track", "throughputs", "across_nodes", "checkpoint", "checkpoint_every", "resume"}),
)
